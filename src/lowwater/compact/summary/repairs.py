"""Repairing a summary: what it lost is appended to it, within its budget; what the user forbade, in any case."""

from collections.abc import Iterable, Iterator, Sequence

from lowwater.compact.summary.critical import is_forbidden
from lowwater.compact.summary.template import Section
from lowwater.ports import Tokenizer
from lowwater.values.summaries import Critical

_PER_LINE = 8
_LABELS = {"path": "Paths: ", "identifier": "Identifiers: ", "value": "Values: "}


def restore(text: str, missing: Sequence[Critical], max_tokens: int, tokenizer: Tokenizer) -> str:
    """Return `text` with the prohibitions among the missing references appended word for word.

    Together they take at most `max_tokens`: a user who pasted a rule book is answered by recall, not by all of it again.
    """
    lines: list[str] = []
    left = max_tokens
    for reference in filter(is_forbidden, missing):
        line = f'"{reference.text}"'
        left -= tokenizer.count(f"\n- {line}")
        if left < 0:
            break
        lines.append(line)
    return text.rstrip() + _block(Section.CONSTRAINTS, lines) if lines else text


def repair(text: str, missing: Sequence[Critical], max_tokens: int, tokenizer: Tokenizer) -> str:
    """Return `text` with the missing references appended, the most important first, in at most `max_tokens`.

    A text that is at its limit already comes back as it is.
    """
    body = text.rstrip()
    added: dict[Section, list[str]] = {Section.CONSTRAINTS: [], Section.CONTEXT: []}
    left = max_tokens - tokenizer.count(body)
    for section, line in _lines(missing):
        heading = 0 if added[section] else tokenizer.count(f"\n\n## {section}")
        cost = heading + tokenizer.count(f"\n- {line}")
        if cost > left:
            break
        added[section].append(line)
        left -= cost
    while any(added.values()):
        whole = body + "".join(_block(section, lines) for section, lines in added.items())
        if tokenizer.count(whole) <= max_tokens:
            return whole
        added[Section.CONTEXT if added[Section.CONTEXT] else Section.CONSTRAINTS].pop()
    return text


def _block(section: Section, lines: Iterable[str]) -> str:
    items = "".join(f"\n- {line}" for line in lines)
    return f"\n\n## {section}{items}" if items else ""


def _lines(missing: Sequence[Critical]) -> Iterator[tuple[Section, str]]:
    for reference in missing:
        match reference.kind:
            case "forbidden":
                yield Section.CONSTRAINTS, f'"{reference.text}"'
            case "ask":
                yield Section.CONTEXT, f'The user asked: "{reference.text}"'
            case "error":
                yield Section.CONTEXT, f"Error seen: {reference.text}"
            case _:
                pass
    for kind, label in _LABELS.items():
        names = [reference.text for reference in missing if reference.kind == kind]
        for start in range(0, len(names), _PER_LINE):
            yield Section.CONTEXT, label + ", ".join(f"`{name}`" for name in names[start : start + _PER_LINE])
