"""How many user instructions does a router take for a message, a link, a connection?

`python -m mesh_tests.bench.instructions --help`. A router runs under valgrind's callgrind, and raw clients take
turns with the router: each client sends a batch in one write, and waits for all answers. So the router reads the
same pieces in every run, and the counts of messages vary by less than a percent, whatever else the machine does. To
compare two revisions, run the same file in the worktree of each, compiled with the same flags. `--keep` leaves
callgrind's dumps in a folder, one for each repetition, for `callgrind_annotate`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from mesh.bench.loopback_mesh import ADDRESSES, LoopbackPlan, topology_of
from mesh.bench.performatives import (
    ATTACH,
    BEGIN,
    CLOSE,
    CLOSE_FRAME,
    DETACH,
    DISPOSITION,
    FLOW,
    HEADER,
    TRANSFER,
    attach_frame,
    begin_frame,
    detach_frame,
    encode,
    flow_frame,
    open_frame,
)
from mesh.bench.values import FALSE, TRUE, described, uint
from wire.sasl import SaslClient, SaslClientSettings

BATCH = 50
CREDIT = 1_000_000
START_TIMEOUT_S = 120.0
ANSWER_TIMEOUT_S = 60.0
BODY = b"\x00\x53\x75\xa0\x64" + b"x" * 100
ACCEPTED = described(0x24, [])


class Client:
    """One connection that reads whole frames."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), ANSWER_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = bytearray()
        self.delivery_id = 0

    def open(self) -> None:
        sasl = SaslClient(SaslClientSettings(None, None, hostname="127.0.0.1"))
        while sasl.verdict is None:
            if out := sasl.output():
                self._socket.sendall(out)
            sasl.receive(self._read())
        self._rest += sasl.leftover
        self._socket.sendall(HEADER + open_frame("instructions", "127.0.0.1") + begin_frame(0))
        while len(self._rest) < len(HEADER):
            self._rest += self._read()
        del self._rest[: len(HEADER)]
        self.wait(BEGIN)

    def say(self, *frames: bytes) -> None:
        self._socket.sendall(b"".join(frames))

    def _read(self) -> bytes:
        data = self._socket.recv(1 << 18)
        if not data:
            raise click.ClickException("the router closed the connection")
        return data

    def wait(self, code: int, count: int = 1) -> bytes:
        """Until so many frames of this kind came, and the last of them."""
        while True:
            size = int.from_bytes(self._rest[:4])
            if len(self._rest) < 8 or len(self._rest) < size:
                self._rest += self._read()
                continue
            frame = bytes(self._rest[:size])
            del self._rest[:size]
            if size > 10 and frame[10] == code:
                count -= 1
                if not count:
                    return frame
            elif size > 10 and frame[10] in (CLOSE, DETACH):
                raise click.ClickException(f"the router ended it: {frame!r}")

    def attach(self, handle: int, address: str, *, is_receiver: bool) -> None:
        frame = attach_frame(0, f"link-{handle}-{is_receiver}", is_receiver=is_receiver, address=address, handle=handle)
        self.say(frame)
        self.wait(ATTACH)

    def detach(self, handle: int) -> None:
        self.say(detach_frame(0, handle))
        self.wait(DETACH)

    def close(self) -> None:
        self.say(CLOSE_FRAME)
        self.wait(CLOSE)
        self._socket.close()


def transfer(number: int, is_settled: bool) -> bytes:
    tag = b"\xa0\x04" + number.to_bytes(4)
    head = encode(0, TRANSFER, uint(0), uint(number), tag, b"\x43", TRUE if is_settled else FALSE)
    return (len(head) + len(BODY)).to_bytes(4) + head[4:] + BODY


class Exchange:
    """A producer and a consumer of one anycast address."""

    def __init__(self, port: int) -> None:
        self.producer, self.consumer = Client(port), Client(port)
        self.producer.open()
        self.consumer.open()
        self.consumer.attach(0, ADDRESSES.anycast + ".x", is_receiver=True)
        self.consumer.say(flow_frame(0, 0, 0, 0, CREDIT))
        self.producer.attach(0, ADDRESSES.anycast + ".x", is_receiver=False)
        self.producer.wait(FLOW)
        self.number = 0

    def run(self, messages: int, *, is_settled: bool = False, is_each: bool = False) -> None:
        for _ in range(messages // BATCH):
            first, self.number = self.number, self.number + BATCH
            self.producer.say(*(transfer(number, is_settled) for number in range(first, self.number)))
            self.consumer.wait(TRANSFER, BATCH)
            if is_settled:
                continue
            ranges = [(n, n) for n in range(first, self.number)] if is_each else [(first, self.number - 1)]
            self.consumer.say(*(encode(0, DISPOSITION, TRUE, uint(a), uint(b), TRUE, ACCEPTED) for a, b in ranges))
            self._wait_settled()

    def run_alone(self, messages: int) -> None:
        """Send messages one by one, each after the router has settled the one before."""
        for _ in range(messages):
            number, self.number = self.number, self.number + 1
            self.producer.say(transfer(number, False))
            self.consumer.wait(TRANSFER)
            self.consumer.say(encode(0, DISPOSITION, TRUE, uint(number), uint(number), TRUE, ACCEPTED))
            self.producer.wait(DISPOSITION)

    def _wait_settled(self) -> None:
        left = BATCH
        while left > 0:
            frame = self.producer.wait(DISPOSITION)
            left -= _settled_by(frame)


def _settled_by(frame: bytes) -> int:
    values, at = [], 14
    for _ in range(2):
        at += 1 if not values else 0
        if frame[at] == 0x43:
            value, at = 0, at + 1
        elif frame[at] == 0x52:
            value, at = frame[at + 1], at + 2
        elif frame[at] == 0x70:
            value, at = int.from_bytes(frame[at + 1 : at + 5]), at + 5
        else:
            value = values[0]
        values.append(value)
    return values[1] - values[0] + 1


class Router:
    """One router under callgrind. Counting is off until `counted`."""

    def __init__(self, folder: Path, *, is_recorded: bool = False) -> None:
        topology = topology_of(LoopbackPlan(1))
        topology["watch"] = "on" if is_recorded else "off"
        topology["routers"]["r1"]["listeners"][0]["idle_timeout_s"] = 600
        file = self.topology_file = folder / "amqpmesh.yml"
        file.write_text(json.dumps(topology))
        self.port = topology["routers"]["r1"]["listeners"][0]["port"]
        self.node_port = topology["routers"]["r1"]["port"]
        self._folder = folder
        self._dumps = 0
        callgrind = [
            "valgrind",
            "-q",
            "--tool=callgrind",
            "--trace-children=yes",
            "--instr-atstart=no",
            f"--callgrind-out-file={folder}/out",
        ]
        node = [
            sys.executable,
            "-P",
            "-m",
            "mesh.bench.orphan_guard",
            str(os.getpid()),
            "node",
            "r1",
            "--topology",
            str(file),
        ]
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONMALLOC": "pymalloc"}
        self._log = (folder / "log").open("ab")
        self._process = subprocess.Popen([*callgrind, *node], stdout=self._log, stderr=self._log, env=environment)

    def wait_ready(self) -> None:
        until = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 5).close()
                return
            except OSError:
                if time.monotonic() > until or self._process.poll() is not None:
                    raise click.ClickException((self._folder / "log").read_text()[-2000:]) from None
                time.sleep(0.2)

    def control(self, *arguments: str) -> None:
        subprocess.run(["callgrind_control", *arguments, str(self._process.pid)], check=True, capture_output=True)

    def count(self, work: Callable[[], None]) -> int:
        """User instructions of the router while ``work`` is done."""
        self.control("-z")
        work()
        time.sleep(0.05)  # what the router still does behind its last answer
        return self._dump()

    async def count_awaited(self, work: Callable[[], Coroutine[Any, Any, None]]) -> int:
        """User instructions of the router while ``work``, a coroutine in this process, is done."""
        await asyncio.to_thread(self.control, "-z")
        await work()
        await asyncio.sleep(0.05)
        return await asyncio.to_thread(self._dump)

    def _dump(self) -> int:
        self.control("-d")
        self._dumps += 1
        text = (self._folder / f"out.{self._dumps}").read_text()
        return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(("totals:",)))

    def stop(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._log.close()


@contextmanager
def running_router(keep: Path | None, *, is_recorded: bool = False) -> Iterator[Router]:
    """Yield a router under callgrind. ``is_recorded``: it writes the ring that an observer reads."""
    with tempfile.TemporaryDirectory(prefix="amqpmesh-bench-") as folder:
        router = Router(keep if keep is not None else Path(folder), is_recorded=is_recorded)
        try:
            router.wait_ready()
            router.control("-i", "on")
            yield router
        finally:
            router.stop()


def _links(client: Client, count: int, address: str, is_receiver: bool) -> None:
    for handle in range(1, count + 1):
        client.attach(handle, address, is_receiver=is_receiver)
    for handle in range(1, count + 1):
        client.detach(handle)


def _connections(port: int, count: int) -> None:
    for _ in range(count):
        client = Client(port)
        client.open()
        client.close()


@click.command()
@click.option("--messages", default=2000, show_default=True, help="Messages of each repetition.")
@click.option("--links", default=50, show_default=True, help="Links of each repetition, attached, then detached.")
@click.option("--connections", default=20, show_default=True)
@click.option("--repeat", default=5, show_default=True)
@click.option("--only", help="Measure rows only whose name contains this.")
@click.option("--keep", type=click.Path(path_type=Path), help="An empty folder for callgrind's dumps.")
@click.option("--json", "is_json", is_flag=True, help="Print JSON: median, least and most of each row.")
def main(
    messages: int, links: int, connections: int, repeat: int, only: str | None, keep: Path | None, is_json: bool
) -> None:
    """Count the user instructions of a router: medians, and the least and most of the repetitions."""
    found: dict[str, dict[str, float]] = {}
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    with running_router(keep) as router:
        exchange = Exchange(router.port)
        client = Client(router.port)
        client.open()
        address = ADDRESSES.anycast + ".y"
        rows: dict[str, tuple[int, Callable[[], None]]] = {
            "message, unsettled": (messages, lambda: exchange.run(messages)),
            "message, each settled alone": (messages, lambda: exchange.run(messages, is_each=True)),
            "message that travels alone": (messages, lambda: exchange.run_alone(messages)),
            "message, pre-settled": (messages, lambda: exchange.run(messages, is_settled=True)),
            "link of a consumer": (links, lambda: _links(client, links, address, True)),
            "link of a producer": (links, lambda: _links(client, links, address, False)),
            "connection": (connections, lambda: _connections(router.port, connections)),
        }
        for name, (count, work) in rows.items():
            if only is not None and only not in name:
                continue
            work()
            counts = [router.count(work) / count for _ in range(repeat)]
            found[name] = {"median": statistics.median(counts), "least": min(counts), "most": max(counts)}
            text = f"{name}: {statistics.median(counts):,.0f} ({min(counts):,.0f} to {max(counts):,.0f})"
            click.echo(text, err=is_json)
    if is_json:
        click.echo(json.dumps(found))


if __name__ == "__main__":
    main()
