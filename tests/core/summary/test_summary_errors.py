"""Error lines are found by the words in them, the same as by their signs."""

from lowwater.core.messages import ToolCall
from lowwater.core.summary.activity import ActivityStep, error_lines


def failed(output: str) -> ActivityStep:
    call = ToolCall(id="1", name="bash", arguments='{"command": "make"}')
    return ActivityStep(
        number=1,
        call=call,
        kind="shell",
        arguments={},
        subject="make",
        output=output,
        answered=True,
        failed=True,
    )


def test_lines_come_in_the_order_of_the_output_whatever_word_they_have() -> None:
    output = "rejected by peer\nfine\nValueError: no\nmore\nfatal: gone\nlast Error: here"
    assert error_lines(failed(output)) == (
        "rejected by peer",
        "ValueError: no",
        "fatal: gone",
        "last Error: here",
    )
