"""`bench attaches`: the frames of a crowd, the waits of a bystander, and CPU time beyond that of idle processes."""

from __future__ import annotations

import socket
from collections import Counter
from typing import Any

import pytest

from mesh.bench import attaches, meter
from mesh.bench.attaches import AttachesBenchRequest, row_beside, seconds_of
from mesh.bench.bystander import Waits
from mesh.bench.dial import Dialed
from mesh.bench.faults import BenchRefused
from mesh.bench.frames import codes
from mesh.bench.handshake import PeerOpen
from mesh.bench.link_crowd import LinkCrowd, attaches_of
from mesh.bench.meter import NetCpu
from mesh.bench.performatives import ATTACH, BEGIN, DETACH, attach_frame, decode, encode
from mesh.bench.values import TRUE, described, symbol, uint
from mesh.client.errors import TimedOut, Unreachable

PLAN: dict[str, Any] = {"links": 5, "per_session": 2, "addresses": "a.%d", "stall_s": 0.2}
ORDER = AttachesBenchRequest(
    connections=20, links=1000, crowd=8, per_session=64, is_shared=False, repeat=1, stall_s=1.0
)


# The crowd
def test_a_connection_attaches_its_links_beside_its_first_with_an_address_each() -> None:
    data = attaches_of(1, PLAN)
    found = [decode(data[at:]) for code, _, at in codes(data)[0] if code == ATTACH]
    places = [(each.channel, each.field(1), each.field(5).value[0]) for each in found if each is not None]
    assert places == [(1, 0, "a.7"), (1, 1, "a.8"), (2, 0, "a.9"), (2, 1, "a.10"), (3, 0, "a.11")]
    assert Counter(code for code, _, _ in codes(data)[0]) == {BEGIN: 3, ATTACH: 5}


def test_no_two_connections_of_a_crowd_have_an_address_in_common() -> None:
    addresses: list[str] = []
    for number in range(3):
        data = attaches_of(number, PLAN)
        addresses += [decode(data[at:]).field(5).value[0] for code, _, at in codes(data)[0] if code == ATTACH]  # type: ignore[union-attr]
        addresses.append(f"a.{number * 6}")
    assert len(set(addresses)) == len(addresses) == 18


@pytest.fixture
def ends() -> Any:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def crowd_on(ours: socket.socket) -> LinkCrowd:
    return LinkCrowd([Dialed(ours, PeerOpen(), [], b"")], PLAN)


def answers(count: int) -> bytes:
    return b"".join(
        attach_frame(1, f"n{handle}", is_receiver=False, address="a", handle=handle) for handle in range(count)
    )


def test_a_crowd_waits_for_the_answer_to_each_attach(ends: Any) -> None:
    ours, theirs = ends
    crowd = crowd_on(ours)
    theirs.sendall(answers(4))
    with pytest.raises(TimedOut, match=r"1 links were not attached when nothing had come for 0\.2 s"):
        crowd.attach_all()
    again = crowd_on(ours)
    theirs.sendall(answers(5))
    again.attach_all()


def test_a_refused_link_and_a_lost_connection_are_sentences(ends: Any) -> None:
    ours, theirs = ends
    error = described(0x1D, [symbol("amqp:not-found")])
    crowd = crowd_on(ours)
    theirs.sendall(answers(2) + encode(1, DETACH, uint(2), TRUE, error))
    with pytest.raises(BenchRefused, match=r"cannot receive from a\.0: amqp:not-found"):
        crowd.attach_all()
    crowd = crowd_on(ours)
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(Unreachable, match="connection lost"):
        crowd.attach_all()


# Waits
def test_the_waits_in_a_time_are_those_of_messages_under_way_in_it() -> None:
    waits = Waits([(1.0, 500_000.0), (2.0, 100.0), (2.9, 300_000.0), (3.5, 7.0)], 0)
    assert waits.during(2.0, 3.0)["max_us"] == 300_000.0
    assert waits.during(1.4, 1.9) == {"p50_us": 5e5, "p95_us": 5e5, "p99_us": 5e5, "max_us": 5e5}
    assert waits.during(4.0, 5.0) == {}


def test_messages_of_others_that_were_lost_are_wrong() -> None:
    row = row_beside("w", [{"p99_us": 1.0, "lost": 2}, {"p99_us": 3.0, "lost": 0}])
    assert row.wrongs == ("w: 2 messages lost",)
    assert row_beside("w", [{"p99_us": 1.0, "lost": 0}]).wrongs == ()


# CPU
class TickingMeter:
    """Processes that use 0.1 CPU when idle, and ``work_s`` beside; ``left_s`` is work that still has to be done."""

    def __init__(self, left_s: float = 0.0) -> None:
        self.now_s = self.work_s = 0.0
        self.left_s = left_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.work_s, self.left_s = self.work_s + self.left_s, 0.0

    def cpu_s(self) -> list[float]:
        return [self.now_s * 0.1 + self.work_s]

    def wait_idle(self) -> None:
        self.sleep(1.0)


@pytest.mark.parametrize("left_s", [0.0, 0.3])
def test_cpu_time_of_idle_processes_and_work_left_over_are_not_counted(
    left_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticking = TickingMeter(left_s)
    monkeypatch.setattr(meter.time, "monotonic", lambda: ticking.now_s)
    monkeypatch.setattr(meter.time, "sleep", ticking.sleep)
    used = NetCpu(ticking)  # type: ignore[arg-type]
    ticking.work_s += 0.002
    assert used.us_each(20) == pytest.approx(100.0)
    assert NetCpu(None).us_each(20) is None


# Rows
def test_rows_name_connections_links_and_addresses() -> None:
    assert ORDER.opened_name("r") == "r, 20 connections opened with a link"
    assert ORDER.attached_name("r") == "r, 20 connections attach 1,000 links each, an address each"
    assert ORDER.beside_name("r") == "r, others while 8 connections attach 1,000 links each, an address each"


def test_a_step_that_took_no_time_has_no_rate_of_infinity() -> None:
    assert seconds_of({"began_at": 1.0, "ended_at": 1.0}) > 0
    assert attaches.MODE == "receivers"
