"""Takes every recorded session through audit, replay (the real engine included), inspect, explain and compress.

    python -m bench.every_log [PATH…] [--workers N]

Prints a table of files, sessions and what was skipped, and each thing that was skipped with its reason. It exits with 1 if
a defect shows, or if a hundredth or more of the sessions or of the recorded dollars is skipped.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

from msgspec import Struct

from lowwater.cli.compress import compressed
from lowwater.cli.conversations import conversation_of
from lowwater.cli.inspect import explained, fill_of
from lowwater.cli.wording import day
from lowwater.core.formats.files import Conversation, decode_conversation
from lowwater.errors import LowwaterError, defect
from lowwater.lab.audit.files import audit_files
from lowwater.lab.replay.run import cores
from lowwater.lab.replay.script import NEUTRAL
from lowwater.lab.replay.session import ReplayOptions, ReplayTask, replay_session
from lowwater.logs.importers import Skipped, files_in, recordings
from lowwater.logs.recording import Recording
from lowwater.session.factories import counter_for
from lowwater.settings import Settings

TRANSCRIPTS = Path(__file__).parents[2] / "shared" / "transcripts"
COMMANDS = ("audit", "replay", "inspect", "explain", "compress")
PLAYED = ReplayOptions(policies=("rent-or-buy", "never", "optimum"), arms=(NEUTRAL,), full=("rent-or-buy",))
MOST = 0.01
"""The share of sessions and of dollars that may be skipped."""
NO_LOG = "no recording in a format that is known"
_NANO = 1_000_000_000
_DEFECT = "a defect"


class Stopped(Struct, frozen=True, kw_only=True):
    """What a command could not do, and why."""

    command: str
    path: str
    session: str
    why: str

    @property
    def is_defect(self) -> bool:
        """Whether the reason is not one of the documented errors."""
        return self.why.startswith(_DEFECT)


class Tried(Struct, frozen=True, kw_only=True):
    """What became of one file."""

    path: str
    agents: tuple[str, ...] = ()
    """Of each of its sessions."""
    dollars: float = 0.0
    """What its sessions cost as recorded."""
    skipped_dollars: float = 0.0
    stopped: tuple[Stopped, ...] = ()
    unread: tuple[Stopped, ...] = ()
    """The file, or the rest of it, gave no session."""
    broken: int = 0
    """Lines that could not be used."""
    calls: int = 0
    """Those that replay played."""
    assumed: int = 0
    """Sessions whose times or model had to be made up."""


def every_file(paths: Sequence[Path], *, workers: int) -> Iterator[Tried]:
    """Yield what becomes of each file in the folders, in order."""
    files = [str(path) for path in files_in(paths)]
    if workers == 1:
        yield from map(try_file, files)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(try_file, files)


def try_file(path: str, *, known: set[str] | None = None) -> Tried:
    """Take each session of a file through every command's own code; one that is `known` is imported and audited only."""
    unread: list[Skipped] = []
    found = list(recordings([Path(path)], on_skipped=unread.append))
    stopped = list(_audit(path))
    dollars = skipped_dollars = 0.0
    calls = assumed = 0
    for recording in found:
        task = ReplayTask(recording=recording, options=PLAYED)
        if known is not None and task.key in known:
            continue
        if known is not None:
            known.add(task.key)
        result = replay_session(task)
        cost = (result.recorded or 0) / _NANO
        dollars, calls = dollars + cost, calls + result.calls
        assumed += bool(result.assumed)
        failed = list(_on_conversation(recording))
        if result.skipped:
            failed.append(Stopped(command="replay", path=path, session=recording.id, why=result.skipped))
        skipped_dollars += cost if failed else 0.0
        stopped += failed
    return Tried(
        path=path,
        agents=tuple(each.agent for each in found),
        dollars=dollars,
        skipped_dollars=skipped_dollars,
        stopped=tuple(stopped),
        unread=tuple(Stopped(command="import", path=path, session="", why=each.why) for each in unread),
        broken=sum(len(each.broken) for each in found) + sum(len(each.broken) for each in unread),
        calls=calls,
        assumed=assumed,
    )


def _audit(path: str) -> Iterator[Stopped]:
    """Yield the sessions that an audit of a file leaves out; what gave no session is told by the import."""
    for file in audit_files([Path(path)], day_of=day):
        for each in file.unread:
            if each.path != path:
                yield Stopped(
                    command="audit", path=path, session=each.path.removeprefix(path).strip(), why=each.why
                )


def _on_conversation(recording: Recording) -> Iterator[Stopped]:
    conversation = conversation_of(recording)
    commands: dict[str, Callable[[Conversation], object]] = {
        "inspect": lambda it: fill_of(it, counter_for(it.model)),
        "explain": lambda it: explained(it, model="", settings=Settings()),
        "compress": _compress,
    }
    for name, command in commands.items():
        try:
            command(conversation)
        except LowwaterError as error:
            yield Stopped(command=name, path=recording.path, session=recording.id, why=str(error))
        except Exception as error:  # noqa: BLE001 - what is looked for here
            yield Stopped(command=name, path=recording.path, session=recording.id, why=defect(error))


def _compress(conversation: Conversation) -> None:
    """Compress a conversation, and read what came of it again: nothing in it may be empty."""
    done = compressed(conversation, model="", settings=Settings())
    again = decode_conversation(done.result, conversation.format)
    assert all(message.parts for message in again.messages), "an empty message was written"


def lines_of(tried: Sequence[Tried]) -> Iterator[str]:
    """Yield the table, a line for each agent, and below it what was skipped and why."""
    agents = sorted({agent for each in tried for agent in each.agents})
    yield f"{'agent':14}{'files':>7}{'sessions':>10}" + "".join(f"{name:>10}" for name in COMMANDS)
    for agent in agents:
        files = [each for each in tried if agent in each.agents]
        sessions = sum(each.agents.count(agent) for each in files)
        yield f"{agent:14}{len(files):7,}{sessions:10,}" + _through(files, agent, sessions)
    sessions = sum(len(each.agents) for each in tried)
    held = [each for each in tried if each.agents]
    yield f"{'all':14}{len(held):7,}{sessions:10,}" + _through(held, "", sessions)
    yield ""
    yield (
        f"{sum(each.calls for each in tried):,} calls replayed by the real engine, "
        f"{sum(each.assumed for each in tried):,} sessions with times or a model made up, "
        f"{sum(each.broken for each in tried):,} lines left out"
    )
    share = shares(tried)
    yield (
        f"skipped: {share.sessions:,} of {sessions:,} sessions ({share.of_sessions:.2%}), "
        f"${share.dollars:,.2f} of ${sum(each.dollars for each in tried):,.2f} ({share.of_dollars:.2%})"
    )
    for one in (one for each in tried for one in each.stopped):
        yield f"  {one.command}: {one.path} {one.session}: {one.why}"
    no_logs = Counter(one.why for each in tried for one in each.unread)
    for why, count in no_logs.most_common():
        yield f"without a session: {count:,} files, {why}"
    for one in (one for each in tried for one in each.unread if one.why != NO_LOG):
        yield f"  {one.path}: {one.why}"


def _through(files: Sequence[Tried], agent: str, sessions: int) -> str:
    """Return how many sessions got through each command; a file with sessions of several agents counts with the first."""
    failed = Counter(
        one.command for each in files if not agent or each.agents[0] == agent for one in each.stopped
    )
    return "".join(f"{sessions - failed[name]:10,}" for name in COMMANDS)


class Shares(Struct, frozen=True, kw_only=True):
    """How much was skipped by any command."""

    sessions: int
    of_sessions: float
    dollars: float
    of_dollars: float


def shares(tried: Iterable[Tried]) -> Shares:
    """Return how many sessions and dollars any command skipped, and what part of all that is."""
    every = list(tried)
    skipped = {(one.path, one.session) for each in every for one in each.stopped}
    sessions = sum(len(each.agents) for each in every)
    lost, dollars = sum(each.skipped_dollars for each in every), sum(each.dollars for each in every)
    return Shares(
        sessions=len(skipped),
        of_sessions=len(skipped) / max(1, sessions),
        dollars=lost,
        of_dollars=lost / dollars if dollars else 0.0,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Try every file, print what became of them, and return 1 if that is not good enough."""
    parser = argparse.ArgumentParser(prog="python -m bench.every_log", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[TRANSCRIPTS])
    parser.add_argument("--workers", type=int, default=cores())
    asked = parser.parse_args(arguments)
    began = perf_counter()
    tried = list(every_file(asked.paths, workers=asked.workers))
    print("\n".join(lines_of(tried)))
    print(f"{perf_counter() - began:.0f} s with {asked.workers} processes")
    share = shares(tried)
    has_defects = any(one.is_defect for each in tried for one in (*each.stopped, *each.unread))
    return int(has_defects or share.of_sessions >= MOST or share.of_dollars >= MOST)


if __name__ == "__main__":
    sys.exit(main())
