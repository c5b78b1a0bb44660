"""Recorded sessions as live clients of two replicas on one PostgreSQL, and their bill beside that of a replay."""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from threading import Thread

import httpx2
import msgspec
import uvicorn
from msgspec import Struct

from bench.gateway.processes import free_port
from bench.gateway.simulated import HINT, Playing, SimulatedProvider
from bench.transcripts import CANONICAL
from lowwater.adapters.models import load_registry
from lowwater.core.models.model import Model
from lowwater.errors import BadInput
from lowwater.gateway.app import Gateway
from lowwater.gateway.options import GatewayOptions
from lowwater.gateway.server import served
from lowwater.lab.references.uses import uses_of
from lowwater.lab.replay.live import CONFIGURATIONS, EngineRun, play_with_engine
from lowwater.lab.replay.script import ReplayScript, course_for, model_named, script_of
from lowwater.logs.importers import recordings
from lowwater.protocols import Store
from lowwater.settings import OutputSettings, Settings
from lowwater.stores.addresses import open_store
from lowwater.testing.postgres import postgres_server


class SetClock:
    """A clock that is set, to whatever time the request at hand was made."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        """Return the time it was set to."""
        return self.at


class Compared(Struct, frozen=True, kw_only=True):
    """One session: what the provider behind the gateway billed, and what the replay says; in nano-dollars."""

    name: str
    calls: int
    compactions: int
    gateway: int
    replay: int
    refused: str
    is_whole: bool
    """Whether its session in the store holds its messages and no others."""

    @property
    def ratio(self) -> float:
        """The one bill divided by the other."""
        return self.gateway / self.replay if self.replay else 1.0


def compare(scripts: Sequence[ReplayScript], model: Model) -> list[Compared]:
    """Play the sessions through two replicas, a call of each by turns, and by the replay."""
    with ExitStack() as stack:
        store = open_store(stack.enter_context(postgres_server()))
        stack.callback(store.close)
        clock = SetClock()
        provider = SimulatedProvider(model, clock)
        upstream = stack.enter_context(serving(provider))
        options = GatewayOptions(
            openai_upstream=upstream, settings=Settings(output=OutputSettings(quiet=True))
        )
        replicas = [stack.enter_context(served(Gateway(options, store, clock=clock))) for _ in range(2)]
        client = stack.enter_context(httpx2.Client(timeout=120))
        outputs = [_outputs(script, model) for script in scripts]
        for script, written in zip(scripts, outputs, strict=True):
            answers = [exchange.answer for exchange in script.exchanges]
            provider.playing[script.name] = Playing(answers=answers, outputs=written)
        _play(scripts, replicas, clock, client, model)
        return [
            _compared(script, provider.playing[script.name], store, model, written)
            for script, written in zip(scripts, outputs, strict=True)
        ]


def _play(
    scripts: Sequence[ReplayScript],
    replicas: Sequence[str],
    clock: SetClock,
    client: httpx2.Client,
    model: Model,
) -> None:
    lists: list[list[bytes]] = [[] for _ in scripts]
    for turn in range(max(len(script.exchanges) for script in scripts)):
        for number, script in enumerate(scripts):
            if turn >= len(script.exchanges):
                continue
            exchange = script.exchanges[turn]
            clock.at = exchange.at
            lists[number] += exchange.new
            head = msgspec.json.encode({"model": model.name})
            body = head[:-1] + b',"messages":[' + b",".join(lists[number]) + b"]}"
            answer = client.post(
                f"{replicas[(turn + number) % len(replicas)]}/v1/chat/completions",
                content=body,
                headers={
                    "authorization": "Bearer one",
                    "content-type": "application/json",
                    HINT: script.name,
                },
            )
            answer.raise_for_status()
            lists[number].append(msgspec.json.encode(answer.json()["choices"][0]["message"]))
        if sys.stderr.isatty() or turn % 50 == 0:
            print(f"turn {turn + 1}", file=sys.stderr, flush=True)


def _compared(
    script: ReplayScript, playing: Playing, store: Store, model: Model, outputs: tuple[int, ...]
) -> Compared:
    part = EngineRun(
        policy="rent-or-buy",
        model=model,
        outputs=outputs,
        configuration=CONFIGURATIONS["no-recall"],
    )
    outcome = play_with_engine(script, uses_of(script.messages), part)
    wanted = [message.digest for message in script.messages]
    kept = [
        (
            each,
            [
                one.message.digest
                for one in store.messages(each.name, 1, each.messages + 1, version=each.version)
            ],
        )
        for each in store.sessions()
        if each.turns == len(script.exchanges)
    ]
    own = next((each for each, digests in kept if digests == wanted), None)
    return Compared(
        name=script.name,
        calls=len(script.exchanges),
        compactions=own.compactions if own else 0,
        gateway=playing.cost,
        replay=outcome.cost,
        refused=playing.refused,
        is_whole=own is not None,
    )


def _outputs(script: ReplayScript, model: Model) -> tuple[int, ...]:
    course = course_for(script, uses_of(script.messages), model=model.name, recorded=model.name)
    return tuple(turn.output for turn in course.turns)


@contextmanager
def serving(app: SimulatedProvider) -> Iterator[str]:
    """Serve a simulated provider from a thread; yields the URL."""
    port = free_port()
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    server.capture_signals = contextmanager(lambda: iter([None]))  # type: ignore[method-assign]
    thread = Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def recorded(count: int, calls: int) -> list[ReplayScript]:
    """Return recorded sessions, drawn by their names, no longer than so many calls."""
    scripts = []
    paths = sorted(CANONICAL.glob("*/*.jsonl.gz"), key=lambda path: blake2b(path.name.encode()).digest())
    for path in paths:
        for recording in recordings([path]):
            try:
                script = script_of(recording)
            except BadInput:
                continue
            if len(script.exchanges) >= 8:
                scripts.append(script.beginning(calls))
        if len(scripts) >= count:
            break
    return scripts[:count]


def main() -> None:
    """Compare, print, and fail if a session's bills differ by more than one per cent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=30)
    parser.add_argument("--calls", type=int, default=150)
    parser.add_argument("--model", default="deepseek")
    given = parser.parse_args()
    scripts = recorded(given.sessions, given.calls)
    rows = compare(scripts, model_named(given.model, load_registry()))
    for row in rows:
        print(f"{row.name}: {row.calls} calls, {row.compactions} compactions, {row.ratio:.4f} {row.refused}")
    together = sum(row.gateway for row in rows) / sum(row.replay for row in rows)
    worst = max(rows, key=lambda row: abs(row.ratio - 1))
    print(f"gateway / replay: {together:.4f} together, {worst.ratio:.4f} at worst ({worst.name})")
    print(
        f"invalid requests: {sum(bool(row.refused) for row in rows)}; sessions not whole: {sum(not row.is_whole for row in rows)}"
    )
    held = abs(worst.ratio - 1) <= 0.01 and all(row.is_whole and not row.refused for row in rows)
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
