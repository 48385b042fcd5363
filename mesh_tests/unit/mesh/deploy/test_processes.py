"""Pid files, back-off, the cause of a death, sd_notify, control sockets."""

import asyncio
import fcntl
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mesh.deploy import log_tail
from mesh.deploy.control import ControlServer, RequestRefused, ask, ask_async
from mesh.deploy.node_process import NodeProcess, describe_exit
from mesh.deploy.pid_file import Holder, PidFile
from mesh.deploy.sd_notify import notify
from mesh.deploy.workdir import SocketPath


def test_a_pid_file_names_its_holder_until_it_is_released(tmp_path: Path) -> None:
    file = PidFile(tmp_path / "r1.pid")
    assert file.holder() is None
    assert file.acquire()
    assert PidFile(file.path).holder() == Holder(os.getpid())
    assert not PidFile(file.path).acquire()
    file.release()
    assert PidFile(file.path).holder() is None


def test_a_pid_file_left_by_a_crash_has_no_holder(tmp_path: Path) -> None:
    path = tmp_path / "r1.pid"
    crash = "import os, signal, sys; from pathlib import Path; from mesh.deploy.pid_file import PidFile; "
    crash += "f = PidFile(Path(sys.argv[1])); f.acquire(); os.kill(os.getpid(), signal.SIGKILL)"
    assert subprocess.run([sys.executable, "-c", crash, str(path)], check=False).returncode == -9
    assert json.loads(path.read_text())["pid"] > 0
    assert PidFile(path).holder() is None
    with PidFile(path) as again:
        assert again.acquire()


def test_a_node_starts_while_others_ask_who_holds_its_pid_file(tmp_path: Path) -> None:
    file = PidFile(tmp_path / "r1.pid")
    assert file.acquire()
    file.release()
    asks = "import sys; from pathlib import Path; from mesh.deploy.pid_file import PidFile\n"
    asks += "print('asks', flush=True)\nwhile True: PidFile(Path(sys.argv[1])).holder()"
    with subprocess.Popen([sys.executable, "-c", asks, str(file.path)], stdout=subprocess.PIPE, text=True) as asking:
        try:
            assert asking.stdout is not None
            assert asking.stdout.readline() == "asks\n"
            for _ in range(2000):
                assert file.acquire()
                file.release()
        finally:
            asking.kill()


def test_a_reader_that_keeps_the_file_locked_is_waited_for(tmp_path: Path) -> None:
    file = PidFile(tmp_path / "r1.pid")
    file.path.touch()
    with file.path.open() as reading:
        fcntl.flock(reading, fcntl.LOCK_SH)
        release = threading.Timer(0.05, fcntl.flock, (reading, fcntl.LOCK_UN))
        release.start()
        assert file.acquire()
        release.join()
    file.release()


def test_the_cause_of_a_death_is_the_last_error_logged_since_its_start(tmp_path: Path) -> None:
    log = tmp_path / "r1.jsonl"
    log.write_text('{"level": "error", "event": "old", "reason": "of the last run"}\n')
    since = log_tail.end_of(log)
    with log.open("a") as file:
        file.write('{"level": "error", "event": "listen_failed", "reason": "port 5672 is in use"}\n')
        file.write('{"level": "info", "event": "stopped"}\n')
    assert log_tail.first_cause(log, since) == "port 5672 is in use"


def test_without_an_error_event_the_last_line_of_a_crash_is_the_cause(tmp_path: Path) -> None:
    log = tmp_path / "r1.jsonl"
    log.write_text('{"level": "info", "event": "started"}\nTraceback:\n  File x\nKeyError: 3\n\n')
    assert log_tail.first_cause(log) == "KeyError: 3"
    assert log_tail.first_cause(log, log_tail.end_of(log)) is None
    assert log_tail.first_cause(tmp_path / "none") is None


BUG = '{"level": "error", "event": "connection_bug", "error": "KeyError(3)", "traceback": "Traceback"}\n'


def test_a_bug_that_a_node_survived_is_not_why_it_died(tmp_path: Path) -> None:
    log = tmp_path / "r1.jsonl"
    log.write_text(BUG)
    assert log_tail.first_cause(log) is None
    log.write_text('{"level": "error", "event": "node_failed", "reason": "the disk is full"}\n' + BUG)
    assert log_tail.first_cause(log) == "the disk is full"
    log.write_text(BUG + "Traceback:\nMemoryError\n")
    assert log_tail.first_cause(log) == "MemoryError"


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        # A sanitizer handles this signal itself, unless the process does.
        (
            "import os, signal; signal.signal(11, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGSEGV)",
            "r1 was ended by SIGSEGV; see ",
        ),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "r1 was ended by SIGKILL; see "),
        (
            "import os; os.write(2, b'free(): bad\\n'); os.abort()",
            "r1 was ended by SIGABRT: free(): bad",
        ),
        ("raise SystemExit(3)", "r1 ended with exit code 3; see "),
        ("raise MemoryError", "r1 ended with exit code 1: MemoryError"),
    ],
)
def test_the_reason_of_a_death_is_that_deaths_and_not_a_traceback_from_before(
    tmp_path: Path, script: str, sentence: str
) -> None:
    life = f"import sys; sys.stderr.write({BUG!r}); sys.stderr.flush(); {script}"

    async def live_and_die() -> str:
        process = NodeProcess("r1", [sys.executable, "-c", life], tmp_path / "r1.jsonl")
        await process.start()
        return process.death_sentence(await process.wait())

    assert asyncio.run(live_and_die()).startswith(sentence)


def test_an_error_without_a_sentence_is_told_by_its_fields() -> None:
    event = {"ts": 1, "level": "error", "node": "r1", "event": "store_failed", "free_bytes": 0}
    assert log_tail.to_sentence(event) == "store_failed free_bytes=0"


def test_an_exit_is_described_by_its_code_or_signal() -> None:
    assert describe_exit(1) == "ended with exit code 1"
    assert describe_exit(-9) == "was ended by SIGKILL"


def test_systemd_is_told_only_where_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    assert not notify("READY=1")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        assert notify("READY=1", "STATUS=2 links")
        assert systemd.recv(100) == b"READY=1\nSTATUS=2 links"


@dataclass(frozen=True)
class Inner:
    name: str


@dataclass(frozen=True)
class Outer:
    inner: tuple[Inner, ...]
    names: frozenset[str]


def test_a_control_socket_answers_snapshots_also_deep_in_the_file_system(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 120)
    folder.mkdir()

    async def talk() -> None:
        path = folder / "r1.sock"
        server = ControlServer(path, {"snapshot": lambda _: Outer((Inner("x"),), frozenset({"b", "a"}))})
        await server.start()
        assert await ask_async(path, "snapshot") == {"inner": [{"name": "x"}], "names": ["a", "b"]}
        assert await asyncio.to_thread(ask, path, "snapshot") == {"inner": [{"name": "x"}], "names": ["a", "b"]}
        with pytest.raises(RequestRefused, match="unknown op 'dance': expected one of snapshot"):
            await ask_async(path, "dance")
        await server.stop()
        with pytest.raises(OSError, match="No such file"):
            await ask_async(path, "snapshot")

    asyncio.run(talk())


@pytest.mark.parametrize("line", ['{"op": ["snapshot"]}', '{"op": {}}', "[" * 50_000, "nonsense", "[]"])
def test_a_control_socket_answers_what_is_no_request_with_a_sentence(tmp_path: Path, line: str) -> None:
    async def talk() -> None:
        path = tmp_path / "r1.sock"
        server = ControlServer(path, {"snapshot": lambda _: 1})
        await server.start()
        with SocketPath(path) as short:
            reader, writer = await asyncio.open_unix_connection(short)
        writer.write(line.encode() + b"\n")
        answer = json.loads(await reader.readline())
        assert answer["ok"] is False
        assert "expected one" in answer["error"]
        writer.close()
        await server.stop()

    asyncio.run(talk())


def test_a_control_socket_hands_over_what_it_is_asked_with_and_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    def half(request: Mapping[str, Any]) -> int:
        if request["of"] % 2:
            raise ValueError(f"{request['of']} is odd")
        return int(request["of"]) // 2

    async def talk() -> None:
        server = ControlServer(tmp_path / "r1.sock", {"half": half})
        await server.start()
        assert await asyncio.to_thread(ask, tmp_path / "r1.sock", "half", of=8) == 4
        with pytest.raises(RequestRefused, match="7 is odd"):
            await asyncio.to_thread(ask, tmp_path / "r1.sock", "half", of=7)
        await server.stop()

    asyncio.run(talk())


def test_a_control_socket_refuses_what_is_no_request(tmp_path: Path) -> None:
    async def talk() -> None:
        server = ControlServer(tmp_path / "r1.sock", {"snapshot": lambda _: 1})
        await server.start()
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "r1.sock"))
        for nonsense in (b"nonsense\n", b"[]\n", b'{"po": 1}\n'):
            writer.write(nonsense)
            assert not json.loads(await reader.readline())["ok"]
        writer.write(b'{"op": "snapshot"}\n')
        assert json.loads(await reader.readline()) == {"ok": True, "snapshot": 1}
        writer.close()
        await server.stop()

    asyncio.run(talk())
