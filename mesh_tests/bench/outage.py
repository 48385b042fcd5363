"""How long do consumers wait when the router on their path is lost? `python -m mesh_tests.bench.outage --help`

A ring of four; producers at r1, consumers at r3, and the router that is lost between them. With --queue the address is
one of a broker at r3, and who is far from it, at r1, is either the producer or the consumer. With one address: the
longest time without a message, one being sent every millisecond. With more: until the last of them has a message that
was sent after the loss, each being sent one at once, and again when it is given back.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable
from itertools import cycle, pairwise
from pathlib import Path

import click

from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED
from wire.link import OutgoingLink
from wire.message import Message, encode

SEND_EVERY_S = 0.001
BEFORE_S = 0.3
LONG_S = 60.0
RUNS_OF_A_MESH = 6
"""A node that dies again and again is started again ever later."""
MESSAGE = encode(Message(body="x"))
TOPOLOGY = """
mesh: ring
hello_interval_s: {hello_interval_s}
node_tls: {tls}
brokers: {{b1: {{routers: [r3], data: b1}}}}
routers:
  r1: {{connect: [r2, r4], listeners: [{{idle_timeout_s: 100}}]}}
  r2: {{connect: [r3]}}
  r3: {{connect: [r4], listeners: [{{idle_timeout_s: 100}}]}}
  r4:
addresses:
  "#": {address}
"""
ANYCAST = "{{type: anycast, retransmit: {retransmit}}}"
QUEUE = "{type: queue, broker: b1}"


class Traffic:
    """Of a producer to a consumer, at one router each, on some addresses."""

    def __init__(self, mesh: RunningMesh, count: int, producer_at: str, consumer_at: str) -> None:
        self.producer = WireClient(mesh.port(producer_at), container_id="producer")
        self.consumer = WireClient(mesh.port(consumer_at), container_id="consumer")
        self.arrived_at: list[float] = []
        self.outcomes: set[str] = set()
        names = [f"a{n}" for n in range(count)]
        receiving = self.consumer.begin()
        self._names = {
            self.consumer.receiver(name, credit=10_000, session=receiving, is_awaited=False): name for name in names
        }
        sending = self.producer.begin()
        self.senders: dict[str, OutgoingLink] = {
            name: self.producer.sender(name, session=sending, is_awaited=False) for name in names
        }
        everyone = (self.producer, self.consumer)
        wait_with(everyone, lambda: all(link.credit > 0 for link in self.senders.values()), "credit", LONG_S)

    def step(self) -> list[str]:
        """The addresses of what arrived."""
        for client in (self.producer, self.consumer):
            client.step(SEND_EVERY_S / 2)
            client.events.clear()
        arrived = self.consumer.settle_all()
        self.arrived_at += [time.monotonic()] * len(arrived)
        return [self._names[each.link] for each in arrived]

    def stream(self, lose: Callable[[], None]) -> float:
        """The longest time without a message, seconds."""
        self.arrived_at.clear()
        (sender,) = self.senders.values()
        began, due, lost_at = time.monotonic(), 0.0, None
        while lost_at is None or time.monotonic() < lost_at + BEFORE_S or self.arrived_at[-1] < lost_at + BEFORE_S:
            now = time.monotonic()
            if lost_at is None and now > began + BEFORE_S:
                lost_at = now
                lose()
            if now >= due and sender.credit > 0:
                due = now + SEND_EVERY_S
                self.producer.send_bytes(sender, MESSAGE)
            self.step()
        return max(later - earlier for earlier, later in pairwise([began, *self.arrived_at]))

    def burst(self, lose: Callable[[], None]) -> float:
        """Until each address has a message that was sent after the loss, seconds."""
        lose()
        lost_at = time.monotonic()
        waiting, under_way = set(self.senders), {}
        while waiting:
            for name in waiting - set(under_way.values()):
                if self.senders[name].credit > 0:
                    under_way[self.producer.send_bytes(self.senders[name], MESSAGE)] = name
            waiting -= set(self.step())
            for number in [number for number in under_way if number in self.producer.outcomes]:
                del under_way[number]
        return self.arrived_at[-1] - lost_at

    def drain_outcomes(self) -> dict[str, int]:
        """How many messages got which outcome since the last time."""
        found: dict[str, int] = {}
        for outcome in self.producer.outcomes.values():
            kind = "accepted" if outcome == ACCEPTED else outcome.kind.name.lower() if outcome else "none"
            found[kind] = found.get(kind, 0) + 1
        self.producer.outcomes.clear()
        return found


def carries(mesh: RunningMesh, router: str) -> int:
    """How many links go through it."""
    return sum(each["links"] for each in mesh.snapshot(router)["node"]["connections"])


def is_complete(mesh: RunningMesh, router: str) -> bool:
    """It runs, and both ends of the path hear it."""
    for end in ("r1", "r3"):
        snapshot = mesh.snapshot(end)
        known = {view["router"]: view["is_neighbor"] for view in snapshot["node"]["routers"]} if snapshot else {}
        if not known.get(router):
            return False
    return True


@click.command()
@click.argument("fault", type=click.Choice(["kill", "stop"]))
@click.option("--runs", default=30, show_default=True)
@click.option("--addresses", default=1, show_default=True)
@click.option("--hello", default=1.0, show_default=True, help="hello_interval_s")
@click.option("--tls", is_flag=True, help="Between the routers.")
@click.option("--retransmit", is_flag=True)
@click.option("--queue", type=click.Choice(["producer", "consumer"]), help="Who is far from the broker.")
@click.option("--json", "is_json", is_flag=True, help="Print JSON: median, least and most.")
def main(
    fault: str,
    runs: int,
    addresses: int,
    hello: float,
    tls: bool,
    retransmit: bool,
    queue: str | None,
    is_json: bool,
) -> None:
    """Lose the transit router by SIGKILL or SIGSTOP, and print the outage of each run in milliseconds."""
    address = QUEUE if queue else ANYCAST.format(retransmit=str(retransmit).lower())
    text = TOPOLOGY.format(hello_interval_s=hello, tls=str(tls).lower(), address=address)
    ends = ("r3", "r1") if queue == "consumer" else ("r1", "r3")
    outages_ms: list[float] = []
    while len(outages_ms) < runs:
        count = min(RUNS_OF_A_MESH, runs - len(outages_ms))
        outages_ms += [outage_s * 1000 for outage_s in run_mesh(text, addresses, ends, fault, count)]
    ordered = sorted(outages_ms)
    median_ms = ordered[len(ordered) // 2]
    if is_json:
        found = {"median": median_ms, "least": ordered[0], "most": ordered[-1]}
        click.echo(json.dumps({"runs": len(ordered), "outage_ms": found}))
    else:
        click.echo(f"median {median_ms:.0f} ms, most {ordered[-1]:.0f} ms, {len(ordered)} runs")


def run_mesh(text: str, addresses: int, ends: tuple[str, str], fault: str, count: int) -> list[float]:
    """Seconds of outage, of so many faults of one mesh."""
    with tempfile.TemporaryDirectory() as folder:
        mesh = RunningMesh(text, Path(folder))
        try:
            traffic = Traffic(mesh, addresses, *ends)
            victims = cycle(sorted(["r2", "r4"], key=lambda router: -carries(mesh, router)))
            return [run_once(mesh, traffic, next(victims), fault) for _ in range(count)]
        finally:
            mesh.down()


def run_once(mesh: RunningMesh, traffic: Traffic, victim: str, fault: str) -> float:
    """Seconds of outage; the victim is back afterwards."""
    wait_until(lambda: is_complete(mesh, victim), LONG_S, f"{victim} to be heard")
    pid = mesh.pid(victim)
    through = carries(mesh, victim)
    number = signal.SIGKILL if fault == "kill" else signal.SIGSTOP
    lose = traffic.stream if len(traffic.senders) == 1 else traffic.burst
    try:
        outage_s = lose(lambda: os.kill(pid, number))
    finally:
        if fault == "stop":
            os.kill(pid, signal.SIGCONT)
    click.echo(f"{victim} with {through} links: {outage_s * 1000:.0f} ms, {traffic.drain_outcomes()}", err=True)
    wait_until(lambda: is_back(mesh, victim, pid, fault, traffic), LONG_S, f"{victim} to be back")
    return outage_s


def is_back(mesh: RunningMesh, victim: str, pid: int, fault: str, traffic: Traffic) -> bool:
    traffic.step()
    return is_complete(mesh, victim) and (fault == "stop" or mesh.pid(victim) != pid)


if __name__ == "__main__":
    main()
