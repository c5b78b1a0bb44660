"""Files are read plain or gzipped; what cannot be read is said in one sentence."""

import gzip
from pathlib import Path

import pytest

from lowwater.adapters.files import read_text_file
from lowwater.errors import UnreadableFile


def test_a_gzipped_file_reads_like_a_plain_one(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.json", tmp_path / "a.json.gz"
    plain.write_bytes(b"[1]")
    packed.write_bytes(gzip.compress(b"[1]"))
    assert read_text_file(str(plain)) == read_text_file(str(packed)) == b"[1]"


@pytest.mark.parametrize(
    ("content", "says"),
    [(gzip.compress(b"x" * 999)[:-9], "damaged"), (b"\x1f\x8bnot gzip at all", "damaged")],
    ids=["cut", "not gzip"],
)
def test_a_damaged_archive_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=says):
        read_text_file(str(path))


def test_a_missing_file_a_directory_and_a_name_no_system_takes(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="no such file"):
        read_text_file(str(tmp_path / "nothing"))
    with pytest.raises(UnreadableFile, match="is a directory"):
        read_text_file(str(tmp_path))
    with pytest.raises(UnreadableFile, match="cannot be read"):
        read_text_file("a\0b")
