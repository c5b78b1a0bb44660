"""The simulated repository: what is read later is what was written and edited before."""

import itertools
import re
from collections.abc import Iterator

import msgspec

from lowwater.core.messages import Message, ToolCall, ToolResult
from tests.generated import GeneratedSession, generate_session

NUMBERED = re.compile(r"^ *(\d+)\t(.*)$")


def answered_calls(messages: tuple[Message, ...]) -> Iterator[tuple[ToolCall, ToolResult]]:
    results = {result.call_id: result for message in messages for result in message.results}
    for message in messages:
        for call in message.calls:
            yield call, results[call.id]


def replay_files(session: GeneratedSession) -> tuple[int, int]:
    """Keep the files as the calls tell of them; return how many reads were compared, and how many of them after an edit."""
    files: dict[str, list[str]] = {}
    edited: set[str] = set()
    compared = after_edit = 0
    for call, result in answered_calls(session.messages):
        given = msgspec.json.decode(call.arguments)
        path = given.get("path", "")
        if result.is_error:
            continue
        if call.name == "write_file":
            files[path] = given["content"].removesuffix("\n").split("\n")
        elif call.name == "patch" and path in files:
            text = "\n".join(files[path])
            assert text.count(given["old_string"]) == 1
            files[path] = text.replace(given["old_string"], given["new_string"]).split("\n")
            edited.add(path)
        elif call.name == "patch":
            edited.discard(path)
        elif call.name == "read_file":
            shown = [NUMBERED.match(line) for line in result.text.split("\n")]
            lines = {int(match[1]): match[2] for match in shown if match}
            if path in files:
                compared += 1
                after_edit += path in edited
                assert all(files[path][number - 1] == text for number, text in lines.items())
            elif "offset" not in given:
                files[path] = [lines[number] for number in sorted(lines)]
    return compared, after_edit


def test_reading_again_shows_the_file_with_all_edits() -> None:
    counts = [replay_files(generate_session("coding", seed=seed, turns=200)) for seed in range(4)]
    assert sum(compared for compared, _ in counts) > 20
    assert sum(after_edit for _, after_edit in counts) > 10


def test_failing_tests_pass_after_the_edit() -> None:
    runs = [
        result.text
        for seed in range(3)
        for call, result in answered_calls(generate_session("coding", seed=seed, turns=150).messages)
        if re.search(r"pytest|jest|go test", call.arguments)
    ]
    failing = [re.search(r"FAIL|failed", run) is not None for run in runs]
    assert any(before and not after for before, after in itertools.pairwise(failing))
    assert 0.2 < sum(failing) / len(failing) < 0.8
