"""A session played through a peer: what it would have sent, request by request."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from bench.peers.catalogue import Variant
from bench.peers.environment import Unavailable, python_with
from bench.peers.stand_in import summary_of
from bench.peers.worker import Worker
from bench.real_peers_billing import Sizes
from bench.real_peers_cases import Case
from bench.real_peers_sent import Asked, Sent
from lowwater.adapters.models import load_registry
from lowwater.core.formats.codec import decode_messages, raw_messages

REPORTING = "gpt-5.6-sol"
"""The model whose tokens peers are told that a request had."""

Progress = Callable[[str], None]


class Terms(Struct, frozen=True, kw_only=True):
    """How peers are run."""

    limit: float = 600.0
    """Seconds that one may take for a session."""
    reports_usage: bool = True
    """Whether they are told what their requests measured, as providers do."""


class Played(Struct, frozen=True, kw_only=True):
    """What a peer sent; `failed` says why there is no more of it."""

    sents: tuple[Sent, ...]
    versions: dict[str, str]
    failed: str = ""

    @property
    def wall(self) -> float:
        """Seconds it took to make the requests."""
        return sum(sent.wall for sent in self.sents)


def play_peer(case: Case, variant: Variant, progress: Progress, terms: Terms) -> Played:
    """Play a session through a peer's own package, in the environment it has or gets."""
    package = variant.package
    try:
        python = python_with(package.environment, *package.requirements)
    except Unavailable as reason:
        return Played(sents=(), versions={}, failed=str(reason))
    worker = Worker(
        python,
        package.worker,
        variant=variant.variant,
        packages=package.packages,
        tools=case.tools,
        limit=terms.limit,
    )
    return play(case, worker, progress, reports_usage=terms.reports_usage)


def play(case: Case, worker: Worker, progress: Progress, *, reports_usage: bool = True) -> Played:
    """Play a session through a worker."""
    sents: list[Sent] = []
    try:
        with worker:
            _requests(case, worker, sents, progress, reports_usage=reports_usage)
    except Unavailable as reason:
        failed = f"after {len(sents)} of {len(case.script.exchanges)} requests {reason}"
        return Played(sents=tuple(sents), versions=worker.versions, failed=failed)
    return Played(sents=tuple(sents), versions=worker.versions)


def _requests(
    case: Case, worker: Worker, sents: list[Sent], progress: Progress, *, reports_usage: bool
) -> None:
    sizes = Sizes(load_registry().find(REPORTING))
    fixed = sizes.preamble(case.script)
    answer: list[dict[str, Any]] = []
    reported: tuple[int, int] | None = None
    system = [{"role": "system", "content": case.system}] if case.system else []
    for turn, exchange in enumerate(case.script.exchanges):
        new = [msgspec.json.decode(raw) for raw in exchange.new]
        given = worker.request(
            [*answer, *(system if not turn else []), *new], reported if reports_usage else None
        )
        messages = tuple(decode_messages(raw_messages(given.messages), "openai_chat"))
        answered = decode_messages([exchange.answer], "openai_chat")[0]
        asked = tuple(Asked(prompt=prompt, answer=summary_of(prompt)) for prompt in given.asked)
        sents.append(
            Sent(messages=messages, answer=answered, at=exchange.at, asked=asked, wall=given.took.wall)
        )
        reported = (fixed + sum(map(sizes.of, messages)), sizes.of(answered))
        answer = [msgspec.json.decode(exchange.answer)]
        progress(f"{turn + 1} of {len(case.script.exchanges)}")


def play_never(case: Case) -> Played:
    """Return the session as it grew, with nothing ever removed."""
    system = [{"role": "system", "content": case.system}] if case.system else []
    history = decode_messages(raw_messages(system), "openai_chat")
    sents: list[Sent] = []
    for exchange in case.script.exchanges:
        history += decode_messages(exchange.new, "openai_chat")
        answered = decode_messages([exchange.answer], "openai_chat")[0]
        sents.append(Sent(messages=tuple(history), answer=answered, at=exchange.at))
        history.append(answered)
    return Played(sents=tuple(sents), versions={})
