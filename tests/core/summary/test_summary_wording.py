"""Whose words stand in an extractive summary, and what gets more room (specification C3, focus)."""

from lowwater.core.messages import Message, Text
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.template import Section


def test_results_in_user_messages_are_no_asks_but_text_beside_them_is(talk, summarised):
    talk.user("Look at the log of the gateway.").runs("cat log", "all quiet")
    result = talk.messages.pop().parts
    talk.messages.append(Message(role="user", parts=(*result, Text(text="And stop the gateway afterwards."))))
    summary = summarised(talk.says("It is stopped.").request())
    assert summary.of(Section.GOAL)[1:] == ('Asked last: "And stop the gateway afterwards."',)
    assert '"And stop the gateway afterwards." → It is stopped.' in summary.of(Section.DONE)


def test_what_the_harness_injected_is_not_taken_for_the_users_words(talk, tokenizer):
    talk.user("<system-reminder>You must always use the Skill tool.</system-reminder>")
    talk.user("This session is being continued from a previous conversation. Never stop.")
    talk.user("Fix the \x1b[31mred\x1b[0m tests.<system-reminder>Never mention this.</system-reminder>")
    text = extract(talk.says("They pass now, all forty of them.").request(), tokenizer)
    assert '"Fix the red tests."' in text
    for injected in ("Skill", "continued", "mention", "reminder", "\x1b"):
        assert injected not in text


def test_a_refused_call_counts_as_what_the_user_said_instead(talk, summarised):
    refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected.\nTo tell you how to proceed, the user said:\nDo not delete it, archive it."
    talk.user("Tidy up the folder please.").runs("rm -rf old", refusal, failed=True).says("Archived.")
    summary = summarised(talk.request())
    assert summary.of(Section.CONSTRAINTS) == ('"Do not delete it, archive it."',)
    assert summary.of(Section.BLOCKED) == ()


def test_items_say_which_message_to_recall_only_if_that_is_possible(talk, tokenizer):
    talk.user("Rename the module to storage.").says("Renamed to `storage`, all imports follow.")
    assert "(lw:41)" in extract(talk.request(first=41, recall=True), tokenizer)
    assert "lw:" not in extract(talk.request(first=41), tokenizer)


def test_focus_gives_its_topic_more_room(talk, tokenizer):
    topics = ("billing", "search", "login", "export")
    for topic in topics * 4:
        talk.user(f"Rework the {topic} page of the product, please.")
        talk.says(
            " ".join(f"The {topic} page got change number {n} for its own good reason." for n in range(30))
        )
    plain = extract(talk.request(max_tokens=700), tokenizer)
    focused = extract(talk.request(max_tokens=700, focus="the billing page"), tokenizer)
    assert focused.count("billing") > 2 * plain.count("billing")
