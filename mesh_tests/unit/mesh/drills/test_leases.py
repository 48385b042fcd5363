"""What is broken is healed whatever becomes of the drill: by itself, or by the guardian when it is gone or late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesh.deploy.workdir import WorkDir
from mesh.drills.faults.processes import state_of
from mesh.drills.leases import Leases, born, let_go_on, run_command, stop
from mesh_tests.waiting import wait_until

PATIENCE_S = 20.0
DRILL = """
import os, signal, sys
from mesh.drills.leases import Leases, let_go_on, run_command
victim, mark = int(sys.argv[1]), sys.argv[2]
with Leases() as leases:
    leases.grant(run_command(f"echo first >> {mark}"))
    leases.grant(let_go_on(victim))
    os.kill(victim, signal.SIGSTOP)
    healed = leases.grant(run_command(f"echo healed >> {mark}"))
    leases.heal(healed)
    leases.grant(run_command(f"echo last >> {mark}"))
    print("broken", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def victim() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    yield process.pid
    process.kill()
    process.wait()


def start(victim: int, mark: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", DRILL, str(victim), str(mark)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "broken\n"
    return process


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None], ids=["killed", "told to end", "well"])
def test_what_was_not_returned_is_healed_the_latest_first(end: signal.Signals | None, victim: int, tmp_path: Path):
    mark = tmp_path / "mark"
    process = start(victim, mark)
    wait_until(lambda: state_of(victim) == "T", PATIENCE_S, "the victim to stand still")
    if end is None:
        process.communicate()
    else:
        process.send_signal(end)
    wait_until(lambda: state_of(victim) != "T", PATIENCE_S, "the victim to go on")
    wait_until(lambda: mark.read_text() == "healed\nlast\nfirst\n", PATIENCE_S, "all to be healed, once each")
    process.communicate()


def test_what_is_overdue_is_healed_though_the_drill_lives(victim: int):
    with Leases() as leases:
        leases.grant(let_go_on(victim), seconds=0.2)
        os.kill(victim, signal.SIGSTOP)
        wait_until(lambda: state_of(victim) != "T", PATIENCE_S, "the guardian to heal it")


def test_a_process_that_only_has_the_number_of_the_old_one_is_left_alone(victim: int):
    os.kill(victim, signal.SIGSTOP)
    wait_until(lambda: state_of(victim) == "T", PATIENCE_S, "the victim to stand still")
    with Leases() as leases:
        leases.heal(leases.grant({**let_go_on(victim), "born": born(victim) - 1}))
        assert state_of(victim) == "T"


def test_what_was_healed_by_other_means_is_not_healed_again(tmp_path: Path):
    with Leases() as leases:
        leases.give_back(leases.grant(run_command(f"touch {tmp_path}/healed")))
    assert not (tmp_path / "healed").exists()


def test_a_supervisor_that_is_just_being_started_is_stopped_although_it_has_no_pid_file(tmp_path: Path):
    file, workdir = tmp_path / "amqpmesh.yml", WorkDir(tmp_path / "work")
    workdir.make()
    begun = [
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)", word, "--topology", str(file)])
        for word in ("up", "node")
    ]
    try:
        with Leases() as leases:
            leases.grant(stop(workdir, file))
        assert [process.wait(PATIENCE_S) for process in begun] == [-signal.SIGTERM, -signal.SIGKILL]
    finally:
        for process in begun:
            process.kill()
            process.wait()
