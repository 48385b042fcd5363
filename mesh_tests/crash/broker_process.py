"""A broker as a process that can be killed and started again on the same data."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from broker.store.failpoints import VARIABLE, StoreFailpoint
from mesh_tests.ports import free_port, is_listening
from mesh_tests.waiting import wait_until

START_S = 20.0


class BrokerProcess:
    """Plain text on its node port, so that a test may speak AMQP to it without a router."""

    def __init__(self, directory: Path, **options: object) -> None:
        """``options`` of the broker in its topology."""
        self.port = free_port()
        self.log = directory / "b1.jsonl"
        self.data = directory / "data"
        more = "".join(f", {key}: {value}" for key, value in options.items())
        self._topology = directory / "amqpmesh.yml"
        self._topology.write_text(
            f"""
mesh: crash
node_tls: false
routers: {{r1: {{}}}}
brokers: {{b1: {{data: {self.data}, port: {self.port}{more}}}}}
addresses:
  orders: {{type: queue, dead_letter: dead, expiry: late}}
  dead: queue
  late: queue
  "news.#": topic
"""
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, crash_at: tuple[StoreFailpoint, int] | None = None) -> None:
        """Returns when it listens. ``crash_at``: it kills itself when it passes that for the so manieth time."""
        self._spawn(crash_at)
        wait_until(lambda: is_listening(self.port) or self._has_died(), START_S, "the broker to listen")
        assert not self._has_died(), f"exit code {self.wait_exit()}\n{self.log.read_text()}"

    def start_in_vain(self, crash_at: StoreFailpoint) -> None:
        """It kills itself at ``crash_at`` before it listens."""
        self._spawn((crash_at, 1))
        assert self.wait_exit() == -signal.SIGKILL, f"it does not pass {crash_at}"

    def _spawn(self, crash_at: tuple[StoreFailpoint, int] | None) -> None:
        armed = {VARIABLE: f"{crash_at[0]}:{crash_at[1]}"} if crash_at else {}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-X", "faulthandler", "-m", "mesh", "node", "b1", "-t", str(self._topology)],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=Path(__file__).parents[2],
                env={
                    "PYTHONPATH": str(Path(__file__).parents[2]),
                    "PATH": "/usr/bin:/bin",
                    "PYTHONFAULTHANDLER": "1",
                    **armed,
                },
            )

    def kill(self) -> None:
        """Now, whatever it is doing."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """In order; its exit code."""
        return self._end(signal.SIGTERM)

    def wait_exit(self) -> int:
        """Its exit code, once it has ended by itself."""
        assert self._process is not None
        return self._process.wait(START_S)

    @property
    def is_running(self) -> bool:
        return not self._has_died()

    def events(self, name: str) -> list[dict[str, Any]]:
        """Those of that kind, so far."""
        lines = [line for line in self.log.read_text().splitlines(keepends=True) if line.endswith("}\n")]
        return [event for line in lines if (event := json.loads(line))["event"] == name]

    @property
    def was_killed(self) -> bool:
        """By ``kill``, or stopped."""
        return self._process is None

    def has_killed_itself(self) -> bool:
        """It is gone, or about to be, and not by ``kill``."""
        return self._process is not None and self.wait_exit() == -signal.SIGKILL

    def _end(self, number: signal.Signals) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(number)
        process, self._process = self._process, None
        return process.wait(START_S)

    def _has_died(self) -> bool:
        return self._process is None or self._process.poll() is not None
