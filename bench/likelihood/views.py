"""The views of a prompt that are compared: Lowwater's at three ceilings, with parts switched off, and two baselines of the same size.

A view is made at once from the whole history, as a session that is resumed under a ceiling would make it. What the ceiling comes to in
tokens of the scoring model is the number of tokens that everything else gets: of the baselines, and of the peers, the largest that
fits.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from types import ModuleType
from typing import Any

import msgspec

from bench.likelihood.prompts import Chat, prompt_tokens
from bench.peers.stand_in import summary_of
from bench.real_peers_sent import text_of
from lowwater.core.mechanisms import registry, spans
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.tools import SEARCH
from lowwater.core.turns import pins
from lowwater.protocols import Summarizer
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.settings import Settings

MODEL, WINDOW = "gpt-5.6-sol", 32_768
"""Whose rules hold, at the window of the scoring model."""
CEILINGS = (0.5, 0.25, 0.12)
"""Shares of the full prompt that Lowwater may show at most."""
ABLATED_AT = 0.25
SUMMARY_SHARE, CHARACTERS = 0.2, 3
"""The length of summaries as a share of the ceiling, and the characters of a token of names."""
PARTS = ("digests", "names", "pins", "arguments")
"""What is switched off, one at a time; reasoning is not recorded, so that dropping it cannot be measured."""


class StandInWriter:
    """The summarizer of all that are compared, as long as a fifth of the ceiling."""

    name = "stand-in"

    def __init__(self, characters: int) -> None:
        self.model = MODEL
        self._characters = characters

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Return what is named most often."""
        asked = f"{request.previous}\n{text_of(request.messages)}"
        return Written(text=summary_of(asked, self._characters), by=self.name)


def summary_size(ceiling: int) -> int:
    """Return the characters of a summary under a ceiling."""
    return round(SUMMARY_SHARE * CHARACTERS * ceiling)


def stand_in(ceiling: int) -> StandInWriter:
    """Return the stand-in for a ceiling."""
    return StandInWriter(summary_size(ceiling))


def lowwater_view(
    messages: Sequence[Chat],
    ceiling: int,
    *,
    without: str = "",
    summarizer: Callable[[int], Summarizer | None] = stand_in,
) -> list[Chat]:
    """Return what the engine shows under a ceiling, as it ships; where there is no summarizer, with extracted summaries."""
    with (
        _switched_off(without),
        _session(messages, ceiling, without=without, summarizer=summarizer(ceiling)) as session,
    ):
        return _shown(session, messages)


def view_and_recall(messages: Sequence[Chat], ceiling: int, words: str) -> tuple[list[Chat], list[Chat]]:
    """Return the view, and the messages of a search for these words by the recall tool."""
    with _session(messages, ceiling, summarizer=stand_in(ceiling)) as session:
        shown = _shown(session, messages)
        arguments = msgspec.json.encode({"query": words}).decode()
        found = session.recall_tools().handle(SEARCH, arguments)
    function = {"name": SEARCH, "arguments": arguments}
    return shown, [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "recall", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "recall", "content": found},
    ]


@contextmanager
def _session(
    messages: Sequence[Chat], ceiling: int, *, summarizer: Summarizer | None, without: str = ""
) -> Iterator[Session]:
    settings: dict[str, Any] = {"max_view_tokens": ceiling, "quiet": True}
    if without == "digests":
        settings["digest_ratio"] = 0
    with Lowwater(
        store="memory:",
        model=MODEL,
        policy="rent-or-buy",
        summarizer=summarizer,
        settings=Settings(**settings),
    ) as library:
        session = library.session("likelihood")
        session.learn_context_length(WINDOW)
        session.append([dict(each) for each in messages if each["role"] != "system"])
        yield session


def _shown(session: Session, messages: Sequence[Chat]) -> list[Chat]:
    system = messages[0]["content"] if messages[0]["role"] == "system" else None
    shown: list[Chat] = session.prepare(system=system, offers_recall=True).as_openai()["messages"]
    return shown


@contextmanager
def _switched_off(part: str) -> Iterator[None]:
    """Take a part out of the engine meanwhile."""
    edits = dict(registry.EDITS)
    if part == "arguments":
        del registry.EDITS["call_arguments"]
    module, name, instead = _INSTEAD.get(part, (registry, "EDITS", registry.EDITS))
    there = getattr(module, name)
    setattr(module, name, instead)
    try:
        yield
    finally:
        setattr(module, name, there)
        registry.EDITS.clear()
        registry.EDITS.update(edits)


def _no_index(*_: object, **__: object) -> str:
    return ""


def _nothing_said(*_: object, **__: object) -> list[object]:
    return []


_INSTEAD: Mapping[str, tuple[ModuleType, str, object]] = {
    "names": (spans, "index_of_results", _no_index),
    "pins": (pins, "_said_in", _nothing_said),
}
"""For a part, what is called for it and what is called instead."""


def groups_of(messages: Sequence[Chat]) -> list[list[Chat]]:
    """Return messages in groups that are never split: a call and its results."""
    groups: list[list[Chat]] = []
    for message in messages:
        if message["role"] == "tool" and groups:
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


def newest(messages: Sequence[Chat], most: int) -> list[Chat]:
    """Return the system prompt and the newest groups that fit into so many tokens; nothing if not even one does.

    Of the one before them, as much of the end of its texts is kept as fits too.
    """
    head, groups = _opened(messages)
    kept = _fitted(head, groups, most, order=range(len(groups) - 2, -1, -1), stops=True)
    next_older = len(groups) - 1 - len(groups_of(kept[len(head) :]))
    if not kept or next_older < 0:
        return kept
    longest = max(len(each["content"] or "") for each in groups[next_older])
    low, high = 0, longest
    while low < high:
        middle = (low + high + 1) // 2
        if len(prompt_tokens(_with_end(head, groups[next_older], kept, middle))) <= most:
            low = middle
        else:
            high = middle - 1
    return _with_end(head, groups[next_older], kept, low) if low else kept


def _with_end(head: list[Chat], group: list[Chat], kept: list[Chat], characters: int) -> list[Chat]:
    """Return what is kept behind a group with the ends of its texts."""
    short = [{**each, "content": (each["content"] or "")[-characters:] or None} for each in group]
    return [*head, *short, *kept[len(head) :]]


def drawn(messages: Sequence[Chat], most: int, seed: str) -> list[Chat]:
    """Return the system prompt, the newest group and others at random that fit into so many tokens; nothing if that does not."""
    head, groups = _opened(messages)
    order = list(range(len(groups) - 1))
    Random(seed).shuffle(order)
    return _fitted(head, groups, most, order=order, stops=False)


def largest_that_fits(
    makes: Callable[[float], Sequence[Chat] | None], most: int, knobs: Sequence[float]
) -> Sequence[Chat] | None:
    """Return the view with the first knob whose view fits into so many tokens; None if even the last one's does not.

    Knobs are in falling order of what they keep; not all are tried.
    """
    found: Sequence[Chat] | None = None
    low, high = 0, len(knobs)
    while low < high:
        middle = (low + high) // 2
        view = makes(knobs[middle])
        if view is not None and len(prompt_tokens(view)) <= most:
            found, high = view, middle
        else:
            low = middle + 1
    return found


def _opened(messages: Sequence[Chat]) -> tuple[list[Chat], list[list[Chat]]]:
    head = [messages[0]] if messages[0]["role"] == "system" else []
    return head, groups_of(messages[len(head) :])


def _fitted(
    head: list[Chat], groups: list[list[Chat]], most: int, *, order: Sequence[int], stops: bool
) -> list[Chat]:
    kept = {len(groups) - 1}
    if len(prompt_tokens([*head, *groups[-1]])) > most:
        return []
    for at in order:
        tried = [message for number in sorted({*kept, at}) for message in groups[number]]
        if len(prompt_tokens([*head, *tried])) <= most:
            kept.add(at)
        elif stops:
            break
    return [*head, *(message for number in sorted(kept) for message in groups[number])]
