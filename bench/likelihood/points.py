"""The rule that chooses decision points; it was committed before anything was scored.

A decision point is an answer of a recorded session that calls a tool. Its prompt is everything before the answer, with the history that
the recording agent's own compactions had replaced; its action is the answer's first call. It counts if

- three or more results of tools stand before it,
- the prompt has 1,000 to 30,000 tokens of the scoring model and the action 8 to 200,
- the arguments are a JSON object, and
- the last three messages and the action are not those of another point (forks repeat their sessions).

Of each session and band of lengths, the point with the smallest hash of its name is taken; of sources with fewer than 12 sessions, the
four smallest. Of each source and band the 24 with the smallest hashes are taken. They are listed in turn: the first of every band and
source, the second, and so on, so that any beginning of the list is balanced. Nothing else about a point decides: not what it names,
not what any view shows of it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bench.likelihood.prompts import Action, Chat, action_of, prompt_tokens
from bench.real_peers_cases import plain_message
from bench.transcripts import CANONICAL
from lowwater.errors import BadInput
from lowwater.lab.replay.script import ReplayScript, script_of
from lowwater.logs.importers import recordings

SWE_AGENT = CANONICAL.parent / "swe-agent"
"""Recorded as `.traj`; the other sources are in the canonical form."""
LEAST_RESULTS = 3
LEAST_TOKENS, MOST_TOKENS = 1_000, 30_000
LEAST_ACTION, MOST_ACTION = 8, 200
BANDS = (2_000, 4_000, 8_000, 16_000, MOST_TOKENS)
"""The upper ends of the bands of lengths."""
FEW_SESSIONS, OF_FEW, OF_A_BAND = 12, 4, 24


class Point(Struct, frozen=True, kw_only=True):
    """A decision point: numbers and names only, no contents."""

    source: str
    session: str
    call: int
    """Which of the session's answers, from 0."""
    band: int
    """The upper end of its band."""
    tokens: int
    """Of the full prompt."""
    action: int
    """Tokens of the action."""

    @property
    def name(self) -> str:
        """What results are filed under."""
        return f"{self.source}/{self.session}#{self.call}"


class Decision(Struct, frozen=True, kw_only=True):
    """A decision point with its contents."""

    point: Point
    messages: tuple[Chat, ...]
    """Of the full prompt, as plain chat messages, the system prompt first where one was recorded."""
    action: Action


def band_of(tokens: int) -> int:
    """Return the upper end of the band of a length."""
    return next(end for end in BANDS if tokens <= end)


def rank(point: Point) -> str:
    """Return what points are ordered by."""
    return sha256(point.name.encode()).hexdigest()


def points() -> list[Point]:
    """Return the decision points in order."""
    candidates: dict[str, list[Point]] = defaultdict(list)
    sessions: Counter[str] = Counter()
    seen: set[str] = set()
    for source, script in scripts():
        sessions[source] += 1
        candidates[source] += candidates_of(source, script, seen)
    return chosen(candidates, sessions)


def chosen(candidates: dict[str, list[Point]], sessions: Counter[str]) -> list[Point]:
    """Return those of the candidates that the rule takes, in its order."""
    turns: list[tuple[int, int, str, Point]] = []
    for source, found in candidates.items():
        each = 1 if sessions[source] >= FEW_SESSIONS else OF_FEW
        taken: Counter[tuple[str, int]] = Counter()
        filled: Counter[int] = Counter()
        for point in sorted(found, key=rank):
            if taken[point.session, point.band] < each and filled[point.band] < OF_A_BAND:
                turns.append((filled[point.band], point.band, source, point))
                taken[point.session, point.band] += 1
                filled[point.band] += 1
    return [point for *_, point in sorted(turns, key=lambda turn: turn[:3])]


def scripts(names: frozenset[str] | None = None) -> Iterator[tuple[str, ReplayScript]]:
    """Yield the recorded sessions that can be replayed, each with its source; `names` are sources, None for all."""
    for folder in (*sorted(CANONICAL.iterdir()), SWE_AGENT):
        if folder.is_dir() and (names is None or folder.name in names):
            for recording in recordings([folder]):
                try:
                    yield folder.name, script_of(recording)
                except BadInput:
                    continue


def candidates_of(source: str, script: ReplayScript, seen: set[str]) -> list[Point]:
    """Return every answer of a session that may be a decision point, except those `seen`, which it adds to."""
    found: list[Point] = []
    for decision in decisions_of(source, script):
        digest = sha256(msgspec.json.encode([decision.messages[-3:], decision.action.text])).hexdigest()
        if digest not in seen:
            seen.add(digest)
            found.append(decision.point)
    return found


def decisions_of(
    source: str, script: ReplayScript, calls: frozenset[int] | None = None, *, most: int = MOST_TOKENS
) -> Iterator[Decision]:
    """Yield the answers of a session that call a tool and have the sizes of a decision point; of `calls` only, if given."""
    messages: list[Chat] = []
    if script.system:
        messages.append({"role": "system", "content": _system(script.system)})
    results = 0
    for call, exchange in enumerate(script.exchanges):
        new = [plain_message(msgspec.json.decode(raw)) for raw in exchange.new]
        results += sum(message["role"] == "tool" for message in new)
        messages += new
        answer = msgspec.json.decode(exchange.answer)
        if results >= LEAST_RESULTS and (calls is None or call in calls):
            action = _action(answer)
            tokens = len(prompt_tokens(messages)) if action is not None else 0
            if tokens > most:
                return
            if action is not None and tokens >= LEAST_TOKENS:
                point = Point(
                    source=source,
                    session=script.name,
                    call=call,
                    band=band_of(tokens),
                    tokens=tokens,
                    action=len(action.tokens),
                )
                yield Decision(point=point, messages=tuple(messages), action=action)
        messages.append(plain_message(answer))


def decisions(chosen: Sequence[Point]) -> Iterator[Decision]:
    """Yield these points with their contents, in the order of the recordings."""
    wanted: dict[tuple[str, str], set[int]] = defaultdict(set)
    for point in chosen:
        wanted[point.source, point.session].add(point.call)
    for source, script in scripts(frozenset(point.source for point in chosen)):
        calls = wanted.get((source, script.name))
        if calls:
            yield from decisions_of(source, script, frozenset(calls))


def _action(answer: dict[str, Any]) -> Action | None:
    """Return the first call of an answer if it may be an action."""
    calls = answer.get("tool_calls") or ()
    if not calls:
        return None
    function = calls[0]["function"]
    try:
        arguments = msgspec.json.decode(function["arguments"])
    except msgspec.DecodeError:
        return None
    if not isinstance(arguments, dict) or len(function["arguments"]) > 20 * MOST_ACTION:
        return None
    action = action_of(function["name"], function["arguments"])
    return action if LEAST_ACTION <= len(action.tokens) <= MOST_ACTION else None


def _system(raw: bytes) -> str:
    system = msgspec.json.decode(raw)
    if isinstance(system, list):
        return "\n".join(part.get("text", "") for part in system if isinstance(part, dict))
    return str(system)


def read_points(path: Path) -> list[Point]:
    """Return the points of a file, one in a line."""
    return [msgspec.json.decode(line, type=Point) for line in path.read_bytes().splitlines()]
