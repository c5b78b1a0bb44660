"""Chat rules about the conversation: tool calls and the messages that answer them."""

from collections.abc import Iterator

from lowwater.testing.provider.openai.body import calls_of, invalid
from lowwater.testing.provider.rule import Incoming, Json, Violation


def call_ids_unique(incoming: Incoming) -> Iterator[Violation]:
    """The calls of one message have different ids."""
    for at, message in enumerate(incoming.messages):
        ids = [call["id"] for call in calls_of(message)]
        for call in sorted({call for call in ids if ids.count(call) > 1}):
            yield invalid(
                f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call}', in messages[{at}].",
                f"messages.[{at}].tool_calls",
            )


def calls_answered(incoming: Incoming) -> Iterator[Violation]:
    """Directly behind an assistant message with calls stand tool messages that answer each of them."""
    for at, message in enumerate(incoming.messages):
        answered = {answer["tool_call_id"] for _, answer in _answers_behind(incoming.messages, at)}
        missing = [call["id"] for call in calls_of(message) if call["id"] not in answered]
        if missing:
            yield invalid(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                "'tool_call_id'. The following tool_call_ids did not have response messages: "
                f"{', '.join(missing)}",
                f"messages.[{at + 1}].role",
            )


def answers_called(incoming: Incoming) -> Iterator[Violation]:
    """A tool message answers a call of the assistant message before it."""
    called: set[str] = set()
    for at, message in enumerate(incoming.messages):
        if message["role"] != "tool":
            called = {call["id"] for call in calls_of(message)}
        elif message["tool_call_id"] not in called:
            yield invalid(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                "'tool_calls'.",
                f"messages.[{at}].role",
            )


def one_answer_per_call(incoming: Incoming) -> Iterator[Violation]:
    """A call is answered once."""
    for at, _ in enumerate(incoming.messages):
        first: dict[str, int] = {}
        for index, answer in _answers_behind(incoming.messages, at):
            call = answer["tool_call_id"]
            if call in first:
                yield invalid(
                    f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call}', "
                    f"in messages[{first[call]}] and messages[{index}].",
                    f"messages.[{index}].tool_call_id",
                )
            first.setdefault(call, index)


def _answers_behind(messages: list[Json], at: int) -> Iterator[tuple[int, Json]]:
    """Yield the tool messages that stand directly behind the one at `at`, if it is not a tool message itself."""
    if messages[at]["role"] == "tool":
        return
    for index in range(at + 1, len(messages)):
        if messages[index]["role"] != "tool":
            return
        yield index, messages[index]
