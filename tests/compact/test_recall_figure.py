import pytest

from bench.recall import RATIO, WANTED, measure, with_digest
from bench.transcripts import CANONICAL
from bench.uses import Reading, find
from lowwater.values.message import Message
from lowwater.values.parts import Text, ToolCall, ToolResult


def said(text, *calls):
    return Message(role="assistant", parts=(Text(text=text), *calls))


def asked(id, **arguments):
    written = ", ".join(f'"{key}": "{value}"' for key, value in arguments.items())
    return ToolCall(id=id, name="bash", arguments=f"{{{written}}}")


def answered(id, text):
    return Message(role="tool", parts=(ToolResult(call_id=id, parts=(Text(text=text),)),))


SESSION = [
    Message(role="user", parts=(Text(text="look at user_named"),)),
    said("", asked("1", command="run arg_named")),
    answered("1", "only_here user_named arg_named twice_named"),
    said("", asked("2", command="again")),
    answered("2", "twice_named"),
    said("so only_here, user_named, arg_named and twice_named", asked("3", command="cat only_here")),
]


def test_a_use_is_what_one_result_alone_had_said_and_counts_once():
    uses = list(Reading(SESSION).uses())
    assert [(use.kind, use.text, use.later) for use in uses] == [("identifier", "only_here", 2)]
    assert uses[0].result.text.startswith("only_here")


def test_a_reference_counts_only_as_whole_words():
    assert find("1204", "51204 and 12045", 0, 15) == -1
    assert find("1204", "51204 and 1204", 0, 14) == 10


@pytest.mark.full
@pytest.mark.skipif(not CANONICAL.exists(), reason="the recorded sessions are not on this machine")
def test_digests_keep_at_least_85_per_cent_of_late_uses_at_16_per_cent_of_the_tokens():
    digest = measure({"digest": with_digest})["digest"]
    assert RATIO == 0.16
    assert digest.over == 0
    assert digest.kept["report", "all"].uses > 2_000
    assert digest.kept["report", "all"].share >= WANTED == 0.85
