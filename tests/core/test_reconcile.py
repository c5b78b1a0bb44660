"""The list a client keeps is matched against the ledger by what it says (specification G)."""

from time import process_time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from lowwater.core.entries import Appended, Compacted, ModelChanged, Opened, PreambleChanged, Rewound
from lowwater.core.formats.codec import decode_messages
from lowwater.core.ledger import Ledger
from lowwater.core.mechanisms import elide
from lowwater.core.mechanisms.spans import replace_span
from lowwater.core.messages import Format, Message, Span, legal_cuts
from lowwater.core.reconcile import branch_of, entries_for, reconcile
from lowwater.core.view import view_items
from lowwater.testing.strategies import ledgers, transcripts
from lowwater.testing.views import Script, asked, lines, making, offer_of, size
from tests.generated import generate_session

FORMATS: list[Format] = ["openai_chat", "anthropic"]


def take(ledger: Ledger, messages: list[Message]) -> Ledger:
    """Bring the ledger up to the client's list."""
    found = reconcile(ledger, messages)
    return ledger.extend(entries_for(found, [size(message) for message in found.new], at=1.0))


def shown(ledger: Ledger) -> list[Message]:
    return ledger.view.messages


def talk(turns: int, format: Format = "openai_chat") -> Script:
    script = Script(format)
    for turn in range(turns):
        script.user(f"question {turn}").calls("bash", {"command": f"step {turn}"}, lines(5), thinking="hm")
        script.says(f"answer {turn}")
    return script


def appended_one_by_one(messages: list[Message]) -> Ledger:
    ledger = Ledger()
    for message in messages:
        ledger = ledger.append(Appended(at=0.0, messages=(message,), tokens=(size(message),)))
    return ledger


def compacted(ledger: Ledger, span: Span) -> Ledger:
    after = replace_span(list(ledger.view.items), span, "What was done.", making())
    return ledger.append(Compacted(at=0.0, mechanisms=("summarize",), items=view_items(after)))


@pytest.mark.parametrize("format", FORMATS)
def test_g_what_is_new_is_appended(format: Format) -> None:
    messages = talk(3, format).messages()
    ledger = take(Ledger(), messages[:5])
    found = reconcile(ledger, messages)
    assert (found.known, found.rewind_to) == (5, None)
    assert list(found.new) == messages[5:]


@pytest.mark.parametrize("format", FORMATS)
def test_g_the_same_list_twice_changes_nothing(format: Format) -> None:
    messages = talk(3, format).messages()
    ledger = take(Ledger(), messages)
    assert take(ledger, talk(3, format).messages()) == ledger


def rewritten(raw: bytes) -> bytes:
    """Return a message with its keys turned round and blanks between them."""
    fields = msgspec.json.decode(raw, type=dict[str, Raw])
    turned = [msgspec.json.encode(key) + b" :\n  " + bytes(fields[key]) for key in reversed(fields)]
    return b"{ " + b" ,\t".join(turned) + b" }"


def marked(raw: bytes) -> bytes:
    fields = msgspec.json.decode(raw)
    content = fields["content"]
    if isinstance(content, str):
        fields["content"] = [{"type": "text", "text": content, "cache_control": {"type": "ephemeral"}}]
    elif content:
        content[-1]["cache_control"] = {"type": "ephemeral"}
    return msgspec.json.encode(fields)


def without_thinking(raw: bytes) -> bytes:
    fields = msgspec.json.decode(raw)
    fields.pop("reasoning_content", None)
    if isinstance(fields["content"], list):
        fields["content"] = [block for block in fields["content"] if block["type"] != "thinking"]
    return msgspec.json.encode(fields)


def with_fields(raw: bytes) -> bytes:
    return msgspec.json.encode({**msgspec.json.decode(raw), "id": "msg_1", "annotations": []})


def trimmed(raw: bytes) -> bytes:
    fields = msgspec.json.decode(raw)
    if isinstance(fields["content"], str):
        fields["content"] = f"  {fields['content']}\n"
    return msgspec.json.encode(fields)


def respelled_arguments(raw: bytes) -> bytes:
    fields = msgspec.json.decode(raw)
    for call in fields.get("tool_calls") or ():
        given = msgspec.json.decode(call["function"]["arguments"])
        call["function"]["arguments"] = msgspec.json.format(msgspec.json.encode(given), indent=4).decode()
    return msgspec.json.encode(fields)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "again", [rewritten, marked, without_thinking, with_fields, trimmed, respelled_arguments]
)
def test_g_a_client_that_writes_its_messages_anew_is_recognised(format: Format, again) -> None:
    messages = talk(3, format).messages()
    ledger = take(Ledger(), messages)
    sent = decode_messages([again(message.wire.raw) for message in messages if message.wire], format)
    found = reconcile(ledger, sent)
    assert (found.new, found.rewind_to, found.known) == ((), None, len(messages))


@pytest.mark.parametrize("format", FORMATS)
def test_g_any_client_that_sends_a_list_twice_is_recognised(format: Format) -> None:
    @given(transcripts(format))
    def check(raws: list[bytes]) -> None:
        ledger = take(Ledger(), decode_messages(raws, format))
        sent = decode_messages([rewritten(raw) for raw in raws], format)
        assert take(ledger, sent) == ledger

    check()


def test_g_an_edited_last_message_replaces_the_one_there_was() -> None:
    messages = talk(3).messages()
    ledger = appended_one_by_one(messages)
    edited = [*messages[:-1], Script().says("another answer").messages()[0]]
    after = take(ledger, edited)
    assert shown(after) == edited
    assert after.history()[: len(messages)] == messages, "nothing is lost"
    assert reconcile(ledger, edited).known == len(messages) - 1


def test_g_a_message_edited_inside_a_batch_that_was_appended_at_once() -> None:
    messages = talk(3).messages()
    ledger = talk(3).ledger()
    edited = [*messages[:4], Script().user("another question").messages()[0]]
    found = reconcile(ledger, edited)
    assert (found.rewind_to, found.known) == (0, 0)
    assert shown(take(ledger, edited)) == edited


def test_g_what_came_in_one_list_can_be_gone_back_into() -> None:
    messages = talk(3).messages()
    edited = [*messages[:4], Script().user("another question").messages()[0]]
    found = reconcile(take(Ledger(), messages), edited)
    assert (found.known, len(found.new)) == (4, 1)


def test_g_a_list_cut_short_goes_back() -> None:
    messages = talk(3).messages()
    for ledger in (appended_one_by_one(messages), talk(3).ledger()):
        after = take(ledger, messages[:4])
        assert shown(after) == messages[:4]
        assert shown(take(after, messages)) == messages


def test_g_another_conversation_altogether_begins_anew() -> None:
    ledger = take(Ledger(), talk(3).messages())
    other = Script().user("Something else.").messages()
    assert shown(take(ledger, other)) == other


def test_g_going_back_keeps_the_system_prompt_the_tools_and_the_model_of_now() -> None:
    messages = talk(3).messages()
    first = Ledger().extend(
        [
            Opened(at=0.0, model="small", vocabulary="words"),
            PreambleChanged(at=0.0, system=b'"old"', tokens=2),
        ]
    )
    ledger = take(first, messages)
    ledger = ledger.append(PreambleChanged(at=0.0, system=b'"new"', tools=b"[]", tokens=3))
    ledger = ledger.append(ModelChanged(at=0.0, model="large"))
    for sent in (messages[:4], Script().user("Something else.").messages()):
        view = take(ledger, sent).view
        assert view.messages == sent
        assert (view.system, view.tools, view.preamble_tokens, view.model) == (b'"new"', b"[]", 3, "large")


def test_g_content_that_is_repeated_on_purpose_is_kept() -> None:
    script = Script()
    for _ in range(4):
        script.user("continue").says("ok")
    messages = script.messages()
    ledger = take(Ledger(), messages[:4])
    assert len(take(ledger, messages).messages) == 8
    assert take(take(ledger, messages), messages) == take(ledger, messages)


def test_g_the_whole_history_is_known_behind_a_compaction() -> None:
    messages = talk(6).messages()
    ledger = compacted(take(Ledger(), messages), Span(start=4, stop=16))
    more = [*messages, *Script().user("And now?").messages()]
    found = reconcile(ledger, more)
    assert (found.known, found.rewind_to) == (len(messages), None)
    assert len(found.new) == 1


def test_g_a_client_that_goes_on_from_the_view_it_was_given_is_recognised() -> None:
    ledger = compacted(take(Ledger(), talk(6).messages()), Span(start=4, stop=16))
    new = Script().user("And now?").messages()
    found = reconcile(ledger, [*shown(ledger), *new])
    assert (found.known, found.rewind_to, list(found.new)) == (len(ledger.view.items), None, new)


def test_g_a_client_that_goes_on_from_a_pruned_view_is_recognised() -> None:
    script = Script().user("go")
    for step in range(4):
        script.calls("bash", {"command": str(step)}, lines(200, f"word{step}"))
    ledger = script.ledger()
    items = list(ledger.view.items)
    proposal = offer_of(elide.NAME, asked(items))
    assert proposal is not None
    after = elide.apply(items, proposal, making())
    ledger = ledger.append(Compacted(at=0.0, mechanisms=("elide",), items=view_items(after)))
    found = reconcile(ledger, [*shown(ledger), *Script().user("And now?").messages()])
    assert (found.known, found.rewind_to, len(found.new)) == (len(items), None, 1)
    assert reconcile(ledger, script.messages()).new == ()


def test_g_an_edit_before_a_compaction_undoes_it_and_one_behind_it_does_not() -> None:
    messages = talk(6).messages()
    ledger = compacted(take(Ledger(), messages[:20]), Span(start=4, stop=16))
    ledger = take(ledger, messages)
    behind = [*messages[:-1], *Script().says("another answer").messages()]
    assert len(take(ledger, behind).view.items) < len(behind)
    assert branch_of(take(ledger, behind)) == [*range(1, 24), 25]
    before = [*messages[:6], *Script().user("another question").messages()]
    assert shown(take(ledger, before)) == before


def test_g_a_summary_from_elsewhere_at_the_start_is_a_message_like_any_other() -> None:
    view = shown(compacted(take(Ledger(), talk(6).messages()), Span(start=0, stop=16)))
    ledger = take(Ledger(), view)
    assert shown(ledger) == view
    assert take(ledger, view) == ledger


def test_rewinds_of_rewinds_do_not_confuse_it() -> None:
    messages = talk(3).messages()
    ledger = appended_one_by_one(messages[:4])
    cut = ledger.append(Rewound(at=0.0, to=2, discard_later=True))
    undone = cut.append(Rewound(at=0.0, to=4))
    grown = undone.append(Appended(at=0.0, messages=(messages[4],), tokens=(1,)))
    again = grown.append(Rewound(at=0.0, to=5))
    assert branch_of(again) == [1, 2, 5]
    wanted = [*messages[:2], *Script().user("another question").messages()]
    assert shown(take(again, wanted)) == wanted


@given(ledgers(), st.data())
def test_g_whatever_the_ledger_the_client_gets_the_list_it_sent(ledger: Ledger, data: st.DataObject) -> None:
    history = [ledger.message(number) for number in branch_of(ledger)]
    kept = history[: data.draw(st.sampled_from(legal_cuts(history)))]
    sent = [*kept, *Script().user("And now?").messages()]
    after = take(ledger, sent)
    assert [after.message(number) for number in branch_of(after)] == sent
    assert take(after, sent) == after
    assert after.history()[: len(ledger.messages)] == ledger.history()


@pytest.mark.parametrize("format", FORMATS)
def test_g_ten_thousand_known_messages_are_reconciled_within_a_tenth_of_a_second(format: Format) -> None:
    session = generate_session("coding", seed=1, turns=500)
    raws = (session.as_openai_chat() if format == "openai_chat" else session.as_anthropic().messages) * 10
    raws = raws[:10_000]
    ledger = take_at_once(decode_messages(raws, format))
    sent = decode_messages([rewritten(raw) for raw in raws], format)
    took = []
    for _ in range(3):
        started = process_time()
        found = reconcile(ledger, sent)
        took.append(process_time() - started)
    assert found.known == len(raws)
    assert min(took) < 0.1


def take_at_once(messages: list[Message]) -> Ledger:
    return Ledger().append(Appended(at=0.0, messages=tuple(messages), tokens=(1,) * len(messages)))
