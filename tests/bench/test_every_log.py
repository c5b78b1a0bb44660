"""Every recorded session on this machine goes through every command; what is skipped is counted, named and very little."""

import pytest

from bench.every_log import COMMANDS, MOST, TRANSCRIPTS, every_file, lines_of, main, shares, try_file
from lowwater.lab.replay.run import cores
from tests.logs.claude_lines import ClaudeLines


def test_a_table_tells_what_went_through_and_what_did_not(tmp_path, capsys):
    lines = ClaudeLines()
    lines.add("attachment", attachment={"type": "hook_success", "content": ""})
    lines.user("Is it there?")
    lines.text("m1", "It is.")
    lines.write(tmp_path / "1.jsonl")
    asked = ClaudeLines("s2")
    asked.user("Is anybody there?")
    asked.write(tmp_path / "2.jsonl")
    (tmp_path / "notes.md").write_text("# Notes")
    assert main([str(tmp_path), "--workers", "1"]) == 1, "one of two sessions has no answer to replay"
    printed = capsys.readouterr().out
    claude = next(line.split() for line in printed.splitlines() if line.startswith("claude-code"))
    assert dict(zip(("files", "sessions", *COMMANDS), map(int, claude[1:]), strict=True)) == {
        "files": 2,
        "sessions": 2,
        "audit": 2,
        "replay": 1,
        "inspect": 2,
        "explain": 2,
        "compress": 2,
    }
    assert f"replay: {tmp_path / '2.jsonl'} s2: no call in it has an answer" in printed
    assert "without a session: 1 files, not a recording in a known format" in printed
    assert try_file(str(tmp_path / "1.jsonl")).stopped == ()


@pytest.mark.full
@pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="no recorded sessions on this machine")
def test_every_recorded_session_goes_through_every_command(record_property):
    tried = list(every_file([TRANSCRIPTS], workers=cores()))
    table = "\n".join(lines_of(tried))
    record_property("table", table)
    print(table)  # noqa: T201 - the table is part of the result
    assert not [one for each in tried for one in (*each.stopped, *each.unread) if one.is_defect]
    share = shares(tried)
    assert sum(len(each.agents) for each in tried) > 800
    assert share.of_sessions < MOST
    assert share.of_dollars < MOST
