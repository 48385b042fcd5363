"""Encoders: one in the writer's process, one as a helper process; both make the same files."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from linklogs.writer.encoders import LINGER_S, HelperEncoder, OwnEncoder
from linklogs.writer.redaction import Redactor
from linklogs.writer.spool import SpoolDamaged
from mesh_tests.programs import IMPORT_PATH
from mesh_tests.unit.linklogs.host import Host
from mesh_tests.waiting import wait_until

WAIT_S = 20.0


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def helper(host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[HelperEncoder]:
    monkeypatch.setenv("PYTHONPATH", IMPORT_PATH["PYTHONPATH"])
    encoder = HelperEncoder(host.out, b"key", ("user",))
    yield encoder
    encoder.close()


@pytest.fixture
def spool(host: Host) -> Path:
    node = host.node()
    node.delivery(5)
    node.text(kind="connection", event="opened", connection=1, user="alice")
    host.step()
    host.stop()
    (found,) = host.spools()
    return found


def pid_of(helper: HelperEncoder) -> int:
    process = helper._process
    assert process is not None
    return process.pid


def test_a_helper_makes_the_same_file_as_the_writer_itself(host: Host, helper: HelperEncoder, spool: Path) -> None:
    expected = OwnEncoder(host.out, Redactor(b"key", ("user",))).encode(spool)
    found = helper.encode(spool)
    assert expected is not None
    assert found is not None
    assert (found.target, bytes(found.data)) == (expected.target, bytes(expected.data))
    assert b"alice" not in found.data


def test_a_spool_that_was_stored_before_is_not_encoded_again(host: Host, helper: HelperEncoder, spool: Path) -> None:
    found = helper.encode(spool)
    assert found is not None
    found.target.parent.mkdir(parents=True)
    found.target.touch()
    assert helper.encode(spool) is None


def test_a_helper_says_which_spool_is_damaged_and_which_is_missing(helper: HelperEncoder, spool: Path) -> None:
    good = spool.read_bytes()
    spool.write_bytes(b"x" * 64)
    with pytest.raises(SpoolDamaged, match="incomplete or damaged header"):
        helper.encode(spool)
    spool.unlink()
    with pytest.raises(FileNotFoundError, match=spool.name):
        helper.encode(spool)
    spool.write_bytes(good)
    assert helper.encode(spool) is not None


def test_a_helper_ends_after_a_while_without_work(helper: HelperEncoder, spool: Path) -> None:
    helper.encode(spool)
    pid = pid_of(helper)
    helper.rest(10.0)
    helper.rest(10.0 + LINGER_S - 0.1)
    assert pid_of(helper) == pid
    helper.encode(spool)
    helper.rest(20.0)
    helper.rest(20.0 + LINGER_S)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert helper.encode(spool) is not None
    assert pid_of(helper) != pid


def test_a_helper_that_died_is_an_error_once_and_then_another_helper_encodes(
    helper: HelperEncoder, spool: Path
) -> None:
    helper.encode(spool)
    os.kill(pid_of(helper), signal.SIGKILL)
    with pytest.raises(OSError, match="the helper process that encodes ended with exit code -9"):
        helper.encode(spool)
    assert helper.encode(spool) is not None


def test_a_helper_ends_with_its_writer(host: Host, spool: Path, tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from linklogs.writer.encoders import HelperEncoder\n"
        f"helper = HelperEncoder(Path({str(host.out)!r}), None, ())\n"
        f"helper.encode(Path({str(spool)!r}))\n"
        "print(helper._process.pid, flush=True); os._exit(0)"
    )
    reading, writing = os.pipe()
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-c", program],
        os.environ | IMPORT_PATH,
        file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1)],
    )
    os.close(writing)
    with os.fdopen(reading) as talk:
        helper = int(talk.readline())
    os.waitpid(pid, 0)

    def has_ended() -> bool:
        state = Path(f"/proc/{helper}/stat")
        return not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"

    wait_until(has_ended, WAIT_S, "the end of the helper")
