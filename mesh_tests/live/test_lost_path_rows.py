"""What becomes of deliveries and links when the way to their taker is lost and no router is, through sockets?

The taker is at r2 or r3 of a triangle: as r1 loses its connection to r2, the way becomes a router longer, or shorter.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import product

import pytest

from mesh_tests.egress import egress_at
from mesh_tests.live.row_mesh import new_address
from mesh_tests.live.triangle import Triangle
from mesh_tests.live.wire_client import WireClient, wait_with
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, OutcomeCode
from wire.message import decode

PATH_WAIT_S = 2.0
STREAM = 300
CROSSING = 20
OTHER_PATH = {"r2": ["r1", "r3", "r2"], "r3": ["r1", "r3"]}

pytestmark = egress_at("r2", "r3")
kinds = pytest.mark.parametrize("kind", ["work", "news"])


@dataclass
class Flow:
    """From a producer at r1 to a consumer at ``egress``."""

    producer: WireClient
    consumer: WireClient
    address: str
    numbers: list[int] = field(default_factory=list)
    bodies: list[int] = field(default_factory=list)
    """Of what came, in order."""

    def __post_init__(self):
        self.consumer.receiver(self.address, credit=2 * STREAM)
        self.sender = self.producer.sender(self.address)

    @property
    def outcomes(self):
        return [self.producer.outcomes.get(number) for number in self.numbers]

    @property
    def is_answered(self):
        return all(number in self.producer.outcomes for number in self.numbers)

    def send(self, most):
        """As many as credit allows, until so many were sent in all."""
        while len(self.numbers) < most and self.sender.credit > 0:
            self.numbers.append(self.producer.send(self.sender, len(self.numbers)))

    def take(self):
        self.bodies += [each.body for each in self.consumer.settle_all()]


class Flows(dict[tuple[str, str], Flow]):
    """An anycast and a multicast to each egress, all at once: what is lost is lost for all of them."""

    def __init__(self, mesh, stack):
        def client(router):
            return stack.enter_context(WireClient(mesh.port(router)))

        for kind, egress in product(("work", "news"), OTHER_PATH):
            self[kind, egress] = Flow(client("r1"), client(egress), new_address(kind))

    def wait(self, holds, what, *, sends=0):
        """Until it ``holds`` of each; meanwhile they send up to so many in all."""
        clients = [client for flow in self.values() for client in (flow.producer, flow.consumer)]

        def go_on():
            for flow in self.values():
                flow.send(sends)
                flow.take()
            return all(map(holds, self.values()))

        wait_with(clients, go_on, what, 20)

    def stream(self, at_half):
        """``at_half`` happens while the first half is under way and before its producers hear of that."""
        self.wait(lambda flow: len(flow.numbers) == STREAM // 2, "half of the streams", sends=STREAM // 2)
        at_half()
        for flow in self.values():
            flow.send(STREAM)
        self.wait(lambda flow: len(flow.numbers) == STREAM and flow.is_answered, "the end of the streams", sends=STREAM)

    def cross(self, mesh):
        """Send with credit that r1 took back as it lost its last path."""
        self.wait(lambda flow: flow.sender.credit >= CROSSING, "credit")
        mesh.cut_off()
        for router in OTHER_PATH:
            mesh.wait_path(router, None)
        for flow in self.values():
            flow.send(CROSSING)
            flow.producer.sender("work.behind")  # an answer to what comes behind them: they were read


@pytest.fixture(scope="module")
def mesh(tmp_path_factory):
    triangle = Triangle(tmp_path_factory.mktemp("triangle"))
    yield triangle
    triangle.down()


# The path is remade
@pytest.fixture(scope="module")
def remade(mesh):
    with ExitStack() as stack:
        flows = Flows(mesh, stack)
        flows.stream(mesh.trunks["r2"].cut)
        for router, path in OTHER_PATH.items():
            mesh.wait_path(router, path)
        return flows


@kinds
def test_while_a_path_is_remade_deliveries_are_held_and_none_is_released(remade, egress, kind):
    flow = remade[kind, egress]
    outcomes = Counter(outcome.kind for outcome in flow.outcomes)
    assert set(outcomes) <= {OutcomeCode.ACCEPTED, OutcomeCode.MODIFIED}
    assert len(flow.bodies) == len(set(flow.bodies)), "what was in doubt was not sent again"
    assert set(range(STREAM // 2, STREAM)) <= set(flow.bodies), "what was sent after the loss got there"


@pytest.fixture(scope="module")
def better(mesh, remade):
    with ExitStack() as stack:
        flows = Flows(mesh, stack)
        flows.stream(mesh.mend)
        return flows


@kinds
def test_when_a_better_path_comes_back_nothing_is_lost(better, egress, kind):
    flow = better[kind, egress]
    assert flow.outcomes == [ACCEPTED] * STREAM
    assert flow.bodies == list(range(STREAM))


# A link route loses a hop
@dataclass
class Route:
    """To a queue, and from two others: one message is held, and nothing comes from the last."""

    client: WireClient
    egress: str

    def __post_init__(self):
        self.sender, other = (self.client.sender(new_address(f"queue.{self.egress}")) for _ in range(2))
        for link in (self.sender, other):
            assert self.client.wait_outcome(self.client.send_when_due(link)) == ACCEPTED
        self.client.receiver(other.remote_target.address, credit=10)
        self.client.wait_arrived(1).clear()
        self.draining = self.client.receiver(new_address(f"queue.{self.egress}"))
        self.client.wait(lambda: self.sender.credit >= 5, "credit")

    def begin(self):
        """What the broker, which is stopped, answers nothing to."""
        self.numbers = [self.client.send(self.sender, "in doubt") for _ in range(5)]
        self.draining.request_drain(10)
        self.client.sender("work.behind")  # an answer to what comes behind them: they were read
        assert self.draining.is_drain_pending

    def hear(self):
        self.in_doubt = [self.client.wait_outcome(number) for number in self.numbers]
        self.client.wait(lambda: not self.draining.is_drain_pending, "the answer to the drain")

    def go_on(self):
        self.afterwards = self.client.wait_outcome(self.client.send_when_due(self.sender))
        self.again = [decode(each.data).delivery_count for each in self.client.wait_arrived(1)]
        self.client.settle_all()
        self.are_open = all(link.is_open for link in self.client.endpoint.links)


@pytest.fixture(scope="module")
def routes(mesh, better):
    with ExitStack() as stack:
        made = {egress: Route(stack.enter_context(WireClient(mesh.port("r1"))), egress) for egress in OTHER_PATH}
        pids = [mesh.pid(broker) for broker in ("b2", "b3")]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            for route in made.values():
                route.begin()
            mesh.trunks["r2"].cut()
            for route in made.values():
                route.hear()
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        for route in made.values():
            route.go_on()
        mesh.mend()
        return made


def test_a_client_of_a_broker_keeps_its_links_and_what_was_under_way_is_in_doubt(routes, egress):
    route = routes[egress]
    assert route.in_doubt == [MODIFIED_FAILED] * 5
    assert route.afterwards == ACCEPTED
    assert route.are_open


def test_what_a_consumer_of_a_broker_held_comes_again(routes, egress):
    assert routes[egress].again == [1]


# A circuit is lost
@dataclass
class Loss:
    """Outcomes of what a consumer held, of what had been sent to it without its credit, and of what had not."""

    written: object
    sent: object
    held: object
    got_by_another: list


@pytest.fixture(scope="module")
def losses(mesh, routes):
    with ExitStack() as stack:

        def client(router):
            return stack.enter_context(WireClient(mesh.port(router)))

        producer, other = client("r1"), client("r1")
        addresses = {egress: new_address("work") for egress in OTHER_PATH}
        numbers, receivers = {}, []
        for egress, address in addresses.items():
            consumer, sender = client(egress), producer.sender(address)
            consumer.receiver(address, credit=1)
            numbers[egress] = [producer.send_when_due(sender)]
            consumer.wait_arrived(1)
            receivers.append(other.receiver(address))
            numbers[egress] += [producer.send_when_due(sender, body) for body in ("sent", "held")]
        producer.sender("work.behind")  # an answer to what comes behind them: they were read
        mesh.cut_off()
        for first, second, _ in numbers.values():
            producer.wait_outcome(first)
            producer.wait_outcome(second)
        for receiver in receivers:
            receiver.grant(10)
        got = [(each.link, each.body) for each in other.wait_arrived(len(receivers))]
        other.settle_all()
        outcomes = {egress: [producer.wait_outcome(number) for number in numbers[egress]] for egress in numbers}
        mesh.mend()
        return {
            egress: Loss(*outcomes[egress], [body for link, body in got if link is receiver])
            for egress, receiver in zip(OTHER_PATH, receivers, strict=True)
        }


def test_of_a_lost_circuit_another_taker_gets_what_was_not_sent_and_the_rest_is_in_doubt(losses, egress):
    assert losses[egress] == Loss(MODIFIED_FAILED, MODIFIED_FAILED, ACCEPTED, ["held"])


# There is no path
@pytest.fixture(scope="module")
def held(mesh, losses):
    with ExitStack() as stack:
        flows = Flows(mesh, stack)
        flows.cross(mesh)
        assert not any(flow.producer.outcomes for flow in flows.values())
        mesh.mend()
        flows.wait(lambda flow: flow.is_answered, "all outcomes")
        return flows


@kinds
def test_what_has_no_path_is_held_for_one_that_comes_back_in_time(held, egress, kind):
    flow = held[kind, egress]
    assert flow.outcomes == [ACCEPTED] * CROSSING
    assert sorted(flow.bodies) == list(range(CROSSING))


@pytest.fixture(scope="module")
def released(mesh, held):
    """And after how long."""
    with ExitStack() as stack:
        flows = Flows(mesh, stack)
        begun = time.monotonic()
        flows.cross(mesh)
        flows.wait(lambda flow: flow.is_answered and flow.sender.credit == 0, "all outcomes")
        return flows, time.monotonic() - begun


@kinds
def test_what_has_no_path_is_released_after_the_wait_for_one(released, egress, kind):
    flows, seconds = released
    assert seconds > PATH_WAIT_S - 0.1
    assert flows[kind, egress].outcomes == [RELEASED] * CROSSING
