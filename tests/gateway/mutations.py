"""Requests and answers gone wrong: valid JSON mutated as bytes and as a tree, by a seeded generator."""

import json
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from random import Random
from typing import Any

_NUMBERS = (0, -1, 1.5, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**19, 10**400, -(2**63), 1e308)
_TEXTS = ("", " ", "\x00", "\ud800", "\udfff x", "\U0001f600", "null", "lw:1", "a" * 3_000, "\ufeff")
_ODD: tuple[Any, ...] = (None, True, [], {}, [[]], [None], {"": None}, *_NUMBERS, *_TEXTS)
_BYTES = (b"\xff", b"\xfe\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\x00", b"\\ud800", b"\\", b'"', b"{", b"]", b"1e999", b"NaN", b"\xef\xbb\xbf")  # fmt: skip
_NOT_FINITE = (float("inf"), float("-inf"), float("nan"))
_DEEP = 1_200
_CONTENT = frozenset({"content", "content_block", "tool_calls", "output", "item"})
"""Fields that hold what the model said."""
_BESIDE = frozenset({"id", "object", "model", "role", "usage", "status", "stop_reason", "stop_sequence", "finish_reason", "service_tier"})  # fmt: skip
"""Fields beside it, wherever they are."""

Node = tuple[Any, Any]
"""A list or an object, and the place in it."""


def mutated(value: Any, random: Random) -> bytes:
    """Return a value as JSON with one to three things wrong in it, or with broken bytes."""
    tree = json.loads(json.dumps(value))
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        random.choice(_TREE)(tree, random)
    written = json.dumps(tree, ensure_ascii=random.random() < 0.5).encode(errors="surrogatepass")
    if random.random() < 0.1:
        written = written.replace(b'""', b"[" * _DEEP + b"]" * _DEEP, 1)
    return broken(written, random) if random.random() < 0.4 else written


def broken(written: bytes, random: Random) -> bytes:
    """Return bytes with one or two places changed: inserted, dropped, doubled, cut off."""
    for _ in range(random.choice((1, 1, 2))):
        at = random.randrange(len(written) + 1)
        to = min(len(written), at + random.randrange(1, 40))
        kind = random.randrange(6)
        if kind == 0:
            written = written[:at]
        elif kind == 1:
            written = written[:at] + written[to:]
        elif kind == 2:
            written = written[:to] + written[at:]
        elif kind == 3:
            written = written[:at] + random.randbytes(random.randrange(1, 4)) + written[to:]
        else:
            # Inside a string where it can be: such bytes are valid for who only looks for brackets.
            inside = written.find(b'": "', at)
            at = inside + 4 if inside >= 0 else at
            written = written[:at] + random.choice(_BYTES) + written[at:]
    return written


def odd_beside_content(value: Any, random: Random) -> bytes:
    """Return an answer, or an event of one, with one to three odd values beside its content."""
    tree = json.loads(json.dumps(value))
    places = [node for node in _nodes(tree, without=_CONTENT) if node[1] in _BESIDE]
    places += [node for holder, place in places if place == "usage" for node in _nodes(holder[place])]
    for holder, place in random.sample(places, min(len(places), random.choice((1, 1, 2, 3)))):
        holder[place] = random.choice((*_ODD, *_NOT_FINITE))
    written = json.dumps(tree).encode()
    return written.replace(b"Infinity", b"1e999") if random.random() < 0.5 else written


def chunked(data: bytes, random: Random) -> list[bytes]:
    """Return bytes cut into a few pieces anywhere."""
    cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.randrange(4)))
    edges = [0, *cuts, len(data)]
    return [data[a:b] for a, b in pairwise(edges) if b > a]


def _nodes(tree: Any, *, without: Collection[str] = ()) -> list[Node]:
    """Return every place in a tree, but for those `without` and what is below them."""
    found: list[Node] = []
    waiting = [tree] if isinstance(tree, dict | list) else []
    while waiting:
        now = waiting.pop()
        places: Sequence[Any] = list(now) if isinstance(now, dict) else range(len(now))
        for place in places:
            if place in without:
                continue
            found.append((now, place))
            if isinstance(now[place], dict | list):
                waiting.append(now[place])
    return found


def _replace(tree: Any, random: Random) -> None:
    if nodes := _nodes(tree):
        holder, place = random.choice(nodes)
        holder[place] = random.choice(_ODD)


def _drop(tree: Any, random: Random) -> None:
    if nodes := _nodes(tree):
        holder, place = random.choice(nodes)
        del holder[place]


def _rename(tree: Any, random: Random) -> None:
    named = [(holder, place) for holder, place in _nodes(tree) if isinstance(holder, dict)]
    if named:
        holder, place = random.choice(named)
        holder[random.choice(("type", "content", "id", "role", "unknown", "\ud800", ""))] = holder.pop(place)


def _double(tree: Any, random: Random) -> None:
    listed = [(holder, place) for holder, place in _nodes(tree) if isinstance(holder, list)]
    if listed:
        holder, place = random.choice(listed)
        holder.insert(place, json.loads(json.dumps(holder[place])))


def _swap(tree: Any, random: Random) -> None:
    if len(nodes := _nodes(tree)) > 1:
        (one, at), (other, there) = random.sample(nodes, 2)
        one[at] = json.loads(json.dumps(other[there]))


def _wrap(tree: Any, random: Random) -> None:
    if nodes := _nodes(tree):
        holder, place = random.choice(nodes)
        holder[place] = [holder[place]] if random.random() < 0.5 else {"type": "odd", "value": holder[place]}


_TREE: tuple[Callable[[Any, Random], None], ...] = (_replace, _replace, _drop, _rename, _double, _swap, _wrap)
