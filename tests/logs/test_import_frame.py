"""Files and folders are walked and recognised by content; what is broken is counted, and nothing in a file raises."""

import gzip
import json
import os

import pytest

from lowwater.logs import files as reading
from lowwater.logs.files import RecordedFile, first_objects, without_lone_surrogates
from lowwater.logs.importers import Progress, Skipped, files_in, recordings
from tests.logs.claude_lines import ClaudeLines


def session(name, *, answers=1):
    lines = ClaudeLines(name, prefix=f"{name}-")
    lines.user("look")
    for at in range(answers):
        lines.text(f"{name}-m{at}", "done")
    return lines


def told(*paths):
    skipped: list[Skipped] = []
    found = list(recordings(paths, on_skipped=skipped.append))
    return found, skipped


def test_folders_are_walked_in_order_and_each_file_is_read_once(tmp_path):
    for name in ("b/two", "a/one", "c"):
        path = tmp_path / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        session(path.stem).write(path)
    (tmp_path / "a" / "again.jsonl").symlink_to(tmp_path / "c.jsonl")
    (tmp_path / "a" / "round").symlink_to(tmp_path, target_is_directory=True)
    found, _ = told(tmp_path, tmp_path / "b" / "two.jsonl")
    assert [one.id for one in found] == ["c", "one", "two"]


def test_what_was_named_is_listed_even_if_there_is_nothing_to_read(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "empty").mkdir()
    named = (tmp_path / "nowhere", tmp_path / "loop", tmp_path / "empty")
    assert files_in(named) == named
    found, skipped = told(*named)
    assert found == []
    assert [one.path for one in skipped] == [str(path) for path in named]
    assert skipped[-1].why == "an empty folder"


def test_a_format_is_known_by_content_whatever_the_name(tmp_path):
    session("s").write(tmp_path / "notes.txt")
    found, _ = told(tmp_path)
    assert [one.agent for one in found] == ["claude-code"]


def test_compressed_files_are_read(tmp_path):
    plain = session("s").write(tmp_path / "s.jsonl").read_bytes()
    (tmp_path / "s.jsonl").write_bytes(gzip.compress(plain))
    found, _ = told(tmp_path)
    assert len(found[0].messages) == 2


def test_a_compressed_file_that_was_cut_off_gives_what_it_has(tmp_path):
    plain = session("s", answers=400).write(tmp_path / "s.jsonl").read_bytes()
    (tmp_path / "s.jsonl").write_bytes(gzip.compress(plain)[:-2000])
    found, _ = told(tmp_path)
    assert 2 <= len(found[0].messages) < 400
    assert "cannot be read on" in found[0].broken[-1].why


def test_what_is_no_recording_is_reported_and_passed_over(tmp_path):
    (tmp_path / "a.md").write_text("# Read me\n")
    (tmp_path / "b.bin").write_bytes(os.urandom(3000))
    (tmp_path / "c.json").write_text('{"some": ["thing", "else"]}')
    (tmp_path / "d").touch()
    os.mkfifo(tmp_path / "e")
    session("s").write(tmp_path / "f.jsonl")
    found, skipped = told(tmp_path, tmp_path / "gone")
    assert [one.id for one in found] == ["s"]
    assert [one.path.rpartition("/")[2] for one in skipped] == ["a.md", "b.bin", "c.json", "d", "e", "gone"]
    assert skipped[-2].why == "not a regular file"
    assert skipped[-1].why == "cannot be read: No such file or directory"


BROKEN = {
    "no JSON": b"not json",
    "cut off": b'{"type":"user","uuid":"x","message":{"ro',
    "not UTF-8": b'{"type":"user","uuid":"x","message":{"role":"user","content":"\xff\xfe"}}',
    "too deep": b'{"type":"user","uuid":"x","message":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "no object": b"[1, 2]",
    "wrong shape": b'{"type":"user","uuid":7}',
    "no message": b'{"type":"user","uuid":"x"}',
    "no content": b'{"type":"assistant","uuid":"x","message":{"id":"m9"}}',
}


@pytest.mark.parametrize("line", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_broken_line_is_counted_with_its_place(line, at, tmp_path):
    whole = session("s").write(tmp_path / "s.jsonl").read_bytes().splitlines()
    whole.insert(at, line)
    (tmp_path / "s.jsonl").write_bytes(b"\n".join(whole))
    (found,), skipped = told(tmp_path / "s.jsonl")
    assert [broken.place for broken in found.broken] == [f"{tmp_path}/s.jsonl:{at + 1}"]
    assert len(found.messages) == 2
    assert skipped == []


def test_usage_of_the_wrong_shape_is_counted_and_the_answer_stays(tmp_path):
    lines = ClaudeLines()
    lines.user("look")
    lines.text("m1", "done", usage=7)
    (found,), _ = told(lines.write(tmp_path / "s.jsonl"))
    assert [broken.place for broken in found.broken] == [f"{tmp_path}/s.jsonl:2"]
    assert found.messages[1].call.usage is None


def test_broken_lines_never_show_their_contents(tmp_path):
    path = session("s").write(tmp_path / "s.jsonl")
    path.write_bytes(path.read_bytes() + b'{"type":"user","uuid":"x","message":"my secret"}\n')
    (found,), _ = told(path)
    assert found.broken
    assert "secret" not in str(found.broken)


def test_a_line_that_is_too_long_is_broken(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LONGEST_LINE", 2000)
    path = session("s").write(tmp_path / "s.jsonl")
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([first, b'{"long":"', b"x" * 9000, b'"}\n', *rest]))
    (found,), _ = told(path)
    assert [broken.place.rpartition(":")[2] for broken in found.broken] == ["2"]
    assert len(found.messages) == 2


def test_a_file_with_too_many_broken_lines_is_not_read_on(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MAX_BROKEN", 5)
    path = session("s", answers=2).write(tmp_path / "s.jsonl")
    *first, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*first, b"x\n" * 20, last]))
    (found,), _ = told(path)
    assert len(found.broken) == 6
    assert len(found.messages) == 2


def test_a_file_of_nothing_but_broken_lines_is_reported_with_them(tmp_path):
    (tmp_path / "s.jsonl").write_text('{"type":"user","uuid":7,"parentUuid":null,"sessionId":"s"}\n')
    found, (skipped,) = told(tmp_path)
    assert found == []
    assert [broken.place for broken in skipped.broken] == [f"{tmp_path}/s.jsonl:1"]


def test_progress_goes_from_nothing_to_all_bytes_on_disk(tmp_path):
    for name in "abc":
        session(name, answers=20).write(tmp_path / f"{name}.jsonl")
    (tmp_path / "d.md").write_text("no recording")
    steps: list[Progress] = []
    list(recordings([tmp_path], on_progress=steps.append))
    read = [step.read for step in steps]
    assert read == sorted(read)
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert (read[0], read[-1], {step.of for step in steps}) == (0, size, {size})


def test_a_large_file_tells_progress_on_the_way(tmp_path):
    path = session("s", answers=3).write(tmp_path / "s.jsonl")
    filler = json.dumps({"type": "file-history-snapshot", "pad": "x" * 100_000}).encode() + b"\n"
    path.write_bytes(path.read_bytes() + filler * 200)
    steps: list[Progress] = []
    list(recordings([path], on_progress=steps.append))
    assert len(steps) >= 5


def test_one_file_is_open_at_a_time_and_nothing_is_read_before_it_is_asked_for(tmp_path):
    session("a").write(tmp_path / "a.jsonl")
    session("b").write(tmp_path / "b.jsonl")
    found = recordings([tmp_path])
    assert next(found).id == "a"
    session("c").write(tmp_path / "b.jsonl")
    assert next(found).id == "c"


def test_a_first_line_longer_than_a_head_is_still_recognised(tmp_path):
    lines = ClaudeLines()
    lines.user("x" * 300_000)
    lines.text("m1", "done")
    found, _ = told(lines.write(tmp_path / "s.jsonl"))
    assert len(found) == 1


def test_lines_can_be_read_again_where_they_begin(tmp_path):
    path = tmp_path / "s.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a":1}\r\n\n  {"b":2}\n{"c":3}'))
    with RecordedFile(path) as file:
        numbered = [(line.number, line.data, file.line_at(line.at)) for line in list(file.lines())]
    assert numbered == [
        (1, b'{"a":1}', b'{"a":1}'),
        (3, b'  {"b":2}', b'  {"b":2}'),
        (4, b'{"c":3}', b'{"c":3}'),
    ]


def test_first_objects_pass_over_what_is_none():
    head = b'broken\n{"a":1}\n[2]\n{"b":2}\n{"cut'
    assert [list(found) for found in first_objects(head)] == [["a"], ["b"]]


@pytest.mark.parametrize(
    ("written", "mended"),
    [
        (rb"\ud83d", rb"\ufffd"),
        (rb"\ude00", rb"\ufffd"),
        (rb"\ud83d\ude00", rb"\ud83d\ude00"),
        (rb"\ud83d\ud83d\ude00", rb"\ufffd\ud83d\ude00"),
        (rb"\\ud83d", rb"\\ud83d"),
        (rb"\uD83D!", rb"\ufffd!"),
        (rb"\u00e9", rb"\u00e9"),
    ],
)
def test_only_half_characters_are_mended(written, mended):
    assert without_lone_surrogates(written) == mended
