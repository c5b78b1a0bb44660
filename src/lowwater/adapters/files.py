"""Files that a user names: plain or gzipped, standard input, and strict YAML."""

import gzip
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import yaml
from msgspec import Struct

from lowwater.errors import UnreadableFile

_GZIP = b"\x1f\x8b"
LARGEST = 1_000_000
"""Most characters of a YAML text; PyYAML takes seconds for more, and settings need a thousandth of it."""
# Errors that PyYAML's constructors raise unwrapped for scalars such as `!!bool x`, `!!int ""`, `2026-13-01` or 5,000 digits.
_CONSTRUCTOR_ERRORS = (ValueError, KeyError, IndexError, AttributeError, TypeError, OverflowError)


def read_text_file(name: str) -> bytes:
    """Return the bytes of the file `name` (`-` is standard input), gunzipped if need be, or raise UnreadableFile."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except FileNotFoundError:
        raise UnreadableFile(f"{name}: no such file") from None
    except IsADirectoryError:
        raise UnreadableFile(f"{name} is a directory: name a file") from None
    except PermissionError:
        raise UnreadableFile(f"{name}: permission denied") from None
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"{name[:200]!r} cannot be read: {error}") from None
    if data[:2] != _GZIP:
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        raise UnreadableFile(f"{name} looks gzipped but is damaged or cut short") from None


class _Loader(yaml.SafeLoader):
    """Reports the line of a value that cannot be constructed."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        try:
            return super().construct_object(node, deep)
        except _CONSTRUCTOR_ERRORS:
            problem = "a value YAML cannot read: put it in quotes if it is meant as text"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None


class YamlDocument(Struct, frozen=True, kw_only=True):
    """The value of a YAML text, and the line of each key by its path (`compression.threshold`), two levels deep."""

    value: object
    lines: dict[str, int]


def read_yaml(text: str, *, name: str) -> YamlDocument:
    """Return the one document in `text`, or raise UnreadableFile with `name` and the line; empty text is null."""
    if len(text) > LARGEST:
        raise UnreadableFile(f"{name} has {len(text):,} characters: no settings file needs {LARGEST:,}")
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            return YamlDocument(value=None, lines={})
        _refuse_duplicate_keys(root, name)
        lines = dict(_lines(root))
        return YamlDocument(value=loader.construct_document(root), lines=lines)
    except yaml.MarkedYAMLError as error:
        raise UnreadableFile(_problem(error, name)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UnreadableFile(f"{name}:{line}: a character that YAML does not allow") from None
    except yaml.YAMLError as error:
        raise UnreadableFile(f"{name}: {error}") from None
    except RecursionError:
        raise UnreadableFile(f"{name} is nested too deeply to be settings") from None


def read_value(text: str) -> object:
    """Return `text` read as a YAML value, or `text` itself if it is not YAML."""
    try:
        return read_yaml(text, name="").value
    except UnreadableFile:
        return text


def _problem(error: yaml.MarkedYAMLError, name: str) -> str:
    line = error.problem_mark.line + 1 if error.problem_mark else 1
    problem = " ".join(str(error.problem or error.context).split())
    if "'\\t'" in problem:
        problem = "a tab: indent with spaces"
    return f"{name}:{line}: {problem}"


def _refuse_duplicate_keys(root: yaml.Node, name: str) -> None:
    seen: set[int] = set()
    todo = [root]
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            first: dict[str, int] = {}
            for key, value in node.value:
                todo += [key, value]
                if not isinstance(key, yaml.ScalarNode):
                    continue
                line = key.start_mark.line + 1
                if key.value in first:
                    raise UnreadableFile(
                        f"{name}:{line}: {key.value[:40]!a} is already given on line {first[key.value]}"
                    )
                first[key.value] = line
        elif isinstance(node, yaml.SequenceNode):
            todo += node.value


def _lines(root: yaml.Node) -> Iterator[tuple[str, int]]:
    for key, value in _pairs(root):
        yield key.value, key.start_mark.line + 1
        for inner, _ in _pairs(value):
            yield f"{key.value}.{inner.value}", inner.start_mark.line + 1


def _pairs(node: yaml.Node) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                yield key, value
