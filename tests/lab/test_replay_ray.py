"""A run on a Ray cluster: real ones of this machine, with the same results to the byte."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic

import msgspec
import pytest
import ray

from lowwater.core.formats.codec import encode_messages
from lowwater.errors import BadInput, BadSetting, MalformedMessage
from lowwater.lab.replay.report import ReportBuilder, report_json
from lowwater.lab.replay.run import (
    AHEAD,
    LocalEngine,
    RayEngine,
    local_environment,
    replay_recordings,
    work_in_same_environment,
)
from lowwater.lab.replay.script import NEUTRAL
from lowwater.lab.replay.session import ReplayOptions, ReplayTask, replay_session
from tests.generated import generate_session
from tests.lab.replay_recordings import recording

OPTIONS = ReplayOptions(policies=("rent-or-buy", "never", "claude-code", "optimum"), full=("rent-or-buy",))
QUICK = ReplayOptions(policies=("never", "optimum"), full=(), arms=(NEUTRAL,))
CORES = 2
CLUSTER = f"""
import logging, os, sys
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
made = ray.init(address="local", num_cpus={CORES}, include_dashboard=False, logging_level=logging.ERROR)
print(made.address_info["gcs_address"], flush=True)
sys.stdin.read()
ray.shutdown()
"""
COMMAND = """
import sys, typer
from lowwater.cli.command import run
from lowwater.cli.replay import replay
app = typer.Typer(pretty_exceptions_enable=False)
app.command()(replay)
sys.exit(run(app)) if __name__ == "__main__" else None
"""


@pytest.fixture(scope="module")
def address():
    """Return where a cluster of this machine answers that somebody else started."""
    started = subprocess.Popen(
        [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    yield started.stdout.readline().strip()
    started.communicate(timeout=60)


def tasks(count: int):
    return (
        ReplayTask(recording=recording(seed, turns=8 + seed), options=QUICK) for seed in range(1, count + 1)
    )


def as_bytes(engine) -> bytes:
    """Return everything that is told of a run, and every series of it."""
    gathering, every = ReportBuilder(), []
    corpus = (recording(seed, turns=8 + 4 * seed) for seed in (1, 2, 3, 4))
    for result in replay_recordings(corpus, OPTIONS, engine=engine):
        gathering.add(result)
        every.append(result)
    every.sort(key=lambda each: each.place)
    return msgspec.json.encode(report_json(gathering.report(OPTIONS.policies))) + msgspec.msgpack.encode(
        every
    )


@pytest.mark.full
def test_a_cluster_started_for_the_run_gives_the_same_bytes_and_is_ended():
    assert as_bytes(RayEngine(workers=CORES)) == as_bytes(LocalEngine(1))
    assert not ray.is_initialized()


@pytest.mark.full
def test_a_cluster_that_is_there_gives_the_same_bytes_and_stays(address):
    expected = as_bytes(LocalEngine(1))
    assert as_bytes(RayEngine(address)) == expected
    assert not ray.is_initialized()
    assert as_bytes(RayEngine(address, workers=1)) == expected


@pytest.mark.full
def test_a_program_that_is_connected_stays_connected(address):
    ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    try:
        assert len(list(RayEngine().map(replay_session, tasks(2)))) == 2
        assert ray.is_initialized()
    finally:
        ray.shutdown()


@pytest.mark.full
def test_tasks_are_read_only_as_the_cluster_can_take_them(address):
    taken = []

    def watched():
        for task in tasks(20):
            taken.append(task.recording.id)
            yield task

    results = RayEngine(address).map(replay_session, watched())
    for done in range(6):
        next(results)
        assert len(taken) <= done + AHEAD * CORES
    results.close()  # type: ignore[attr-defined]
    assert not ray.is_initialized()


@pytest.mark.full
def test_what_goes_wrong_in_a_task_arrives_as_it_was(address):
    def refuse(task):
        raise MalformedMessage(7, f"not for {task.recording.id}")

    with pytest.raises(MalformedMessage, match=r"^message 7: not for session-1$") as caught:
        list(RayEngine(address).map(refuse, tasks(1)))
    assert caught.value.index == 7


@pytest.mark.full
def test_a_worker_that_dies_again_and_again_is_told_in_one_sentence(address):
    def die(task):
        os._exit(1)

    with pytest.raises(BadInput, match=r"^the Ray cluster failed: The worker died [^\n]+$"):
        list(RayEngine(address).map(die, tasks(1)))


def work_of_this_module(task):
    return replay_session(task)


@pytest.mark.full
def test_what_a_machine_of_the_cluster_lacks_is_named(address):
    with pytest.raises(BadSetting, match=r"has no \S*test_replay_ray\S*: install lowwater\[ray\] there"):
        list(RayEngine(address).map(work_of_this_module, tasks(1)))


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_where_nobody_listens_is_refused_at_once(scheme):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(BadSetting, match=f"no Ray cluster at {scheme}127.0.0.1:{port}: "):
        list(RayEngine(f"{scheme}127.0.0.1:{port}").map(replay_session, tasks(1)))


def test_an_address_that_is_none_is_refused():
    with pytest.raises(BadSetting, match="no Ray cluster at nonsense: "):
        list(RayEngine("nonsense").map(replay_session, tasks(1)))


def test_a_machine_with_other_versions_makes_no_results():
    task, here = next(tasks(1)), local_environment()
    assert work_in_same_environment(replay_session, task, here) == replay_session(task)
    other = msgspec.structs.replace(here, packages={**here.packages, "numpy": "1.0"})
    with pytest.raises(BadSetting, match=r"would make other results: it has numpy \S+ instead of 1\.0$"):
        work_in_same_environment(replay_session, task, other)
    with pytest.raises(BadSetting, match="it has another Lowwater"):
        work_in_same_environment(
            replay_session, task, msgspec.structs.replace(here, results=here.results - 1)
        )


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BadSetting, match=r"install lowwater\[ray\]"):
        RayEngine()


def test_no_workers_are_refused():
    with pytest.raises(BadSetting, match="at least one"):
        RayEngine(workers=0)


def begin(place, *args: str, sessions: int = 4) -> "subprocess.Popen[bytes]":
    """Start the command on recorded sessions, as a terminal would."""
    (place / "recorded").mkdir(exist_ok=True)
    for seed in range(1, 1 + sessions):
        made = generate_session("coding", seed=seed, turns=25)
        pairs = zip(encode_messages(made.messages, "openai_chat"), made.times, strict=True)
        lines = [json.dumps({**json.loads(raw), "ts": at}) for raw, at in pairs]
        (place / "recorded" / f"{seed}.jsonl").write_text("\n".join(lines))
    (place / "command.py").write_text(COMMAND)
    return subprocess.Popen(
        [
            *(sys.executable, str(place / "command.py"), str(place / "recorded")),
            *("--model", "anthropic-r10", "--policies", "rent-or-buy,never", *args),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.mark.full
def test_the_command_prints_the_same_on_a_cluster_and_nothing_of_ray(tmp_path):
    here, _ = begin(tmp_path, "--workers", "1", "--json").communicate()
    there, said = begin(tmp_path, "--engine", "ray", "--workers", "2", "--json").communicate()
    assert there == here
    assert len(json.loads(there)["sessions"]) == 4
    assert said == b""


@pytest.mark.full
def test_an_interrupt_ends_the_run_and_its_cluster(tmp_path):
    kept = tmp_path / "run"
    # So many that the run cannot be over by the time its first result is seen.
    begun = begin(tmp_path, "--engine", "ray", "--workers", "1", "--run", str(kept), sessions=60)
    while begun.poll() is None and not list(kept.glob("*.result")):
        pass
    assert sys.platform != "linux" or of_cluster(begun.pid)
    os.killpg(begun.pid, signal.SIGINT)
    _, said = begun.communicate(timeout=60)
    assert begun.returncode == 130
    assert said == b"lowwater: interrupted; run it again to go on from here\n"
    until = monotonic() + 30
    while (left := of_cluster(begun.pid)) and monotonic() < until:
        pass
    assert left == []


def of_cluster(pid: int) -> list[bytes]:
    """Return the processes that name the folder of the cluster which this one started."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(each.read_bytes())
    return [each for each in found if b"/session_" in each and f"_{pid}/".encode() in each]
