"""A run: the sessions of a corpus given to an engine, those finished before taken from a folder."""

from collections import deque
from collections.abc import Iterable, Iterator

from lowwater.logs.recording import Recording
from lowwater.replay.running.engine import Engine
from lowwater.replay.running.folder import RunFolder
from lowwater.replay.running.results import SessionResult
from lowwater.replay.running.session import Options, Task, replay_session


def replay(
    recordings: Iterable[Recording], options: Options, *, engine: Engine, folder: RunFolder | None = None
) -> Iterator[SessionResult]:
    """Yield the result of each session once, in no certain order; with a folder, what is there is not done again."""
    if folder is None:
        yield from engine.map(replay_session, (Task(recording=each, options=options) for each in recordings))
        return
    finished: deque[str] = deque()
    for result in engine.map(replay_session, _unfinished(recordings, options, folder, finished)):
        folder.keep(result)
        yield result
        yield from _taken(finished, folder)
    yield from _taken(finished, folder)


def _unfinished(
    recordings: Iterable[Recording],
    options: Options,
    folder: RunFolder,
    finished: deque[str],
) -> Iterator[Task]:
    """Yield the tasks that are still to do, and put the keys of the others aside."""
    for recording in recordings:
        task = Task(recording=recording, options=options)
        if folder.has(task.key):
            finished.append(task.key)
        else:
            yield task


def _taken(keys: deque[str], folder: RunFolder) -> Iterator[SessionResult]:
    while keys:
        yield folder.find(keys.popleft())
