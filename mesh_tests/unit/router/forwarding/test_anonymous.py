"""A sender without an address by itself: how its messages find their groups, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from proton import Message

from addressing.address import Address
from mesh_tests.outcomes import told
from mesh_tests.unit.router.forwarding.rig import Consumer, NoSharing, Producer, Rig
from router.forwarding.anonymous import AnonymousProducer
from router.forwarding.ends import Taker
from router.forwarding.guard import Guard
from router.forwarding.settings import ForwardingSettings
from wire.address_cache import AddressCache
from wire.delivery import ACCEPTED, RELEASED, OutcomeCode
from wire.errors import AmqpError


def to(address: str | None, body: str = "x", **fields: Any) -> bytes:
    return bytes(Message(address=address, body=body, **fields).encode())


PATIENCE_S = ForwardingSettings().stall_timeout_s


@dataclass
class Post:
    """An anonymous sender, and groups that are made as they are asked for."""

    rig: Rig
    treatment: str = "anycast"
    groups: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    looked_up: list[str] = field(default_factory=list)
    patterns: AddressCache = field(default_factory=lambda: AddressCache(lambda: None))

    def find(self, address: str) -> Any:
        self.asked.append(address)
        if address.startswith("unknown"):
            raise AmqpError("amqp:not-found", f"no {address}")
        return self.group(address.removeprefix("amqp://host/"))

    def pattern_of(self, name: str) -> Address | None:
        self.looked_up.append(name)
        return Address("", "shared.#") if name.startswith("shared.") else None

    def group(self, address: str) -> Any:
        address = "shared.#" if address.startswith("shared.") else address
        if address not in self.groups:
            self.groups[address] = getattr(self.rig, self.treatment)()
        return self.groups[address]

    def sender(self, capacity: int = 10) -> Producer:
        producer, link = self.rig.incoming()
        guard = Guard(link, 0, self.rig.offences.append)
        producer.inlet = AnonymousProducer(
            link, capacity, self.find, self.pattern_of, self.patterns, NoSharing(), guard, self.rig.recorder
        )
        producer.inlet.top_up()
        self.rig.run()
        return producer

    def consumer(self, address: str, credit: int = 10) -> Consumer:
        return self.rig.consumer(self.group(address), credit)


@pytest.fixture
def post(rig: Rig) -> Post:
    return Post(rig)


def test_an_address_is_looked_up_once_for_each_way_it_is_spelled(post: Post):
    consumer, sender = post.consumer("a", credit=100), post.sender(capacity=100)
    for _ in range(10):
        sender.send(to("a"), to("a", reply_to="r", subject="s", id="m"), to("b"))
    post.rig.run()
    assert len(consumer.messages) == 20
    assert post.asked == ["a", "b"]


def test_however_an_address_is_spelled_its_messages_wait_in_one_line(post: Post):
    consumer, sender = post.consumer("a", credit=0), post.sender()
    messages = [to("a", "1"), to("amqp://host/a", "2"), to("a", "3"), to("amqp://host/a", "4")]
    sender.send(*messages)
    post.rig.run()
    assert len(post.group("a").inlets) == 1
    consumer.link.grant(10)
    post.rig.run()
    assert consumer.messages == messages


def test_addresses_of_a_pattern_find_its_group_once_and_their_pattern_once_each(post: Post):
    consumer, sender = post.consumer("shared.x", credit=100), post.sender(capacity=100)
    messages = [to(f"shared.{number}") for number in (1, 2, 3, 1, 2, 3)]
    sender.send(*messages, to("amqp://host/shared.1"))
    post.rig.run()
    assert consumer.messages == [*messages, to("amqp://host/shared.1")]
    assert post.asked == ["shared.1"]
    assert post.looked_up == ["shared.1", "shared.2", "shared.3", "shared.1"], "once for each way it is spelled"


def test_an_address_in_any_script_is_found(post: Post):
    consumer, sender = post.consumer("приказы/données"), post.sender()
    sender.send(to("приказы/données"))
    post.rig.run()
    assert consumer.messages == [to("приказы/données")]


def test_what_waits_keeps_its_order_and_is_overtaken_by_others(post: Post):
    slow, quick, sender = post.consumer("slow", credit=0), post.consumer("quick"), post.sender()
    sender.send(to("slow", "1"), to("quick", "2"), to("slow", "3"))
    post.rig.run()
    assert (slow.messages, quick.messages) == ([], [to("quick", "2")])
    slow.link.grant(2)
    post.rig.run()
    assert slow.messages == [to("slow", "1"), to("slow", "3")]


@pytest.mark.parametrize("treatment", ["anycast", "multicast"])
def test_its_credit_is_its_capacity_less_what_is_not_settled(post: Post, treatment: str):
    post.treatment = treatment
    consumer, sender = post.consumer("a", credit=1000), post.sender(capacity=10)
    for _ in range(20):
        sender.send(*[to("a")] * sender.link.credit)
        post.rig.run()
        assert len(consumer.held) <= 10
        assert sender.link.credit + len(consumer.held) <= 10
        consumer.answer()
        post.rig.run()
        assert sender.link.credit >= 5
    assert len(sender.outcomes) >= 150


def test_what_is_for_nobody_is_refused_with_a_sentence_and_costs_no_credit(post: Post):
    sender = post.sender(capacity=4)
    wrong = [to("unknown"), to(None), to(""), b"no message", to("a")[:9]]
    for message in wrong * 3:
        sender.send(message)
        post.rig.run()
        assert sender.link.credit >= 2
    conditions = [outcome.error.condition for _, outcome in sender.outcomes]
    assert conditions == [
        "amqp:not-found", "amqp:invalid-field", "amqp:invalid-field", "amqp:decode-error", "amqp:decode-error",
    ] * 3  # fmt: skip
    assert all(outcome.kind is OutcomeCode.REJECTED and outcome.error.description for _, outcome in sender.outcomes)
    assert sender.error is None


def test_what_is_refused_is_asked_about_each_time(post: Post):
    sender = post.sender()
    sender.send(to("unknown"), to("unknown"))
    post.rig.run()
    assert post.asked == ["unknown"] * 2


def test_a_large_message_streams_and_the_next_one_follows(post: Post):
    consumer, sender = post.consumer("a"), post.sender()
    message = to("a", "x" * 500_000)
    sender.begin(message[:200_000])
    post.rig.run()
    assert len(consumer.partial) > 100_000
    sender.link.send(message[200_000:])
    sender.link.finish()
    sender.send(to("a"))
    post.rig.run()
    assert consumer.messages == [message, to("a")]


@pytest.mark.parametrize("treatment", ["anycast", "multicast"])
def test_a_large_message_to_where_nobody_is_stops_nobody(post: Post, treatment: str):
    post.treatment = treatment
    consumer, sender = post.consumer("a"), post.sender()
    message = to("empty", "x" * 500_000)
    sender.begin(message[:200_000])
    post.rig.advance(post.rig.settings.path_wait_s + 1)
    sender.link.send(message[200_000:])
    sender.link.finish()
    sender.send(to("a"))
    post.rig.run()
    consumer.answer()
    post.rig.run()
    assert [told(outcome) for _, outcome in sender.outcomes] == [told(RELEASED), told(ACCEPTED)]


@pytest.mark.parametrize("treatment", ["anycast", "multicast"])
def test_a_large_message_aborted_where_it_waits_stops_nobody(post: Post, treatment: str):
    post.treatment = treatment
    consumer, sender = post.consumer("a", credit=0), post.sender()
    delivery = sender.begin(to("a", "x" * 500_000)[:200_000])
    post.rig.run()
    sender.link.abort(delivery)
    sender.send(to("a", "whole"))
    post.rig.run()
    consumer.link.grant(10)
    post.rig.advance(1.0)
    assert (consumer.messages, consumer.partial) == ([to("a", "whole")], b"")
    consumer.answer()
    post.rig.run()
    assert [told(outcome) for _, outcome in sender.outcomes] == [told(ACCEPTED)]


@pytest.mark.parametrize(("treatment", "taken"), [("anycast", 1), ("multicast", 2)])
def test_large_messages_aborted_where_they_wait_cost_no_credit(post: Post, treatment: str, taken: int):
    """Of a multicast the copy that was begun takes credit of the consumer, too."""
    post.treatment = treatment
    consumer, sender = post.consumer("a", credit=0), post.sender(capacity=10)
    for number in range(20):
        assert sender.link.credit >= 2
        half = sender.begin(to("a", "x" * 500_000)[:200_000])
        post.rig.run()
        sender.link.abort(half)
        sender.send(to("a", f"{number}"))
        post.rig.run()
        consumer.link.grant(taken)
        post.rig.run()
        consumer.answer()
        post.rig.run()
    assert consumer.messages == [to("a", f"{number}") for number in range(20)]


def test_what_was_read_of_a_large_message_is_not_lost_when_its_circuit_takes_the_credit_back(post: Post):
    rig, group = post.rig, post.group("a")
    post.consumer("a").taker.is_closing = True
    circuit = rig.consumer(group, cost=1)
    stream, link = rig.outgoing()
    stream.taker = Taker(link, group, 1, is_stream=True)
    stream.link.grant(1)
    rig.run()
    rig.open_stream = lambda *_: stream.taker
    stream.connection.router.is_output_blocked = True
    sender = post.sender()
    message = to("a", "x" * 500_000)
    sender.begin(message[:200_000])
    rig.run()
    stream.link.set_credit(0)
    rig.run()
    stream.connection.router.is_output_blocked = False
    rig.run()
    sender.link.send(message[200_000:])
    sender.link.finish()
    stream.link.grant(1)
    rig.run()
    circuit.link.grant(1)
    rig.run()
    assert stream.messages == [message]


def released(sender: Producer) -> int:
    return [told(outcome) for _, outcome in sender.outcomes].count(told(RELEASED))


def held_up(post: Post) -> tuple[Consumer, Consumer, Producer]:
    """A sender that has used up its credit on an address that takes nothing, and would send to another one."""
    stuck, quick, sender = (
        post.consumer("stuck", credit=0),
        post.consumer("quick", credit=100),
        post.sender(capacity=40),
    )
    sender.send(to("quick", "first"), *[to("stuck", str(number)) for number in range(39)])
    post.rig.run()
    quick.answer()
    post.rig.run()
    assert sender.link.credit < 20
    return stuck, quick, sender


@pytest.mark.parametrize("after_s", [1.3 * PATIENCE_S, 2 * PATIENCE_S], ids=["at once", "later"])
def test_an_address_that_takes_nothing_does_not_use_up_what_others_need(post: Post, after_s: float) -> None:
    stuck, quick, sender = held_up(post)
    post.rig.advance(after_s)
    assert released(sender) == 29
    for number in range(100):
        sender.send(to("stuck", "more"), to("quick", str(number)))
        post.rig.run()
        quick.answer()
        post.rig.run()
        assert sender.link.credit >= 10
    assert released(sender) == 129
    stuck.link.grant(100)
    post.rig.run()
    assert stuck.messages == [to("stuck", str(number)) for number in range(29, 39)]
    sender.send(*[to("stuck", "taken")] * 20)
    post.rig.run()
    assert len(stuck.messages) == 30, "it takes again, and waits as others do"


def test_many_addresses_that_take_nothing_share_what_may_wait(post: Post) -> None:
    sender = post.sender(capacity=40)
    for number in range(20):
        post.consumer(f"stuck-{number}", credit=0)
        sender.send(to(f"stuck-{number}", "1"), to(f"stuck-{number}", "2"))
    post.rig.run()
    assert sender.link.credit == 0
    post.rig.advance(2 * PATIENCE_S)
    assert sender.link.credit >= 20
    before = released(sender)
    sender.send(*[to(f"stuck-{number}", "3") for number in range(20)])
    post.rig.run()
    assert released(sender) == before + 20, "each has something that waits already"


def test_who_takes_slowly_holds_its_sender_back(post: Post) -> None:
    stuck, _, sender = held_up(post)
    for _ in range(39):
        post.rig.advance(PATIENCE_S * 0.9)
        stuck.link.grant(1)
        post.rig.run()
        stuck.answer()
        post.rig.run()
    assert released(sender) == 0
    assert stuck.messages == [to("stuck", str(number)) for number in range(39)]


@pytest.mark.parametrize("before", [0, 2])
def test_a_large_message_for_who_takes_nothing_stops_the_others_only_for_a_while(post: Post, before: int) -> None:
    post.consumer("stuck", credit=0)
    quick, sender = post.consumer("quick"), post.sender(capacity=40)
    sender.send(*[to("stuck")] * before)
    delivery = sender.begin(to("stuck", "x" * 200_000)[:150_000])
    post.rig.run()
    post.rig.advance(2 * PATIENCE_S)
    assert released(sender) == before
    sender.link.send(to("stuck", "x" * 200_000)[150_000:])
    sender.link.finish()
    sender.send(to("quick"))
    post.rig.run()
    assert delivery not in sender.open
    assert quick.messages == [to("quick")]


def test_a_large_message_that_takes_its_time_is_not_given_back(post: Post) -> None:
    reader, sender = post.consumer("a", credit=1), post.sender(capacity=40)
    rest = to("a", "x" * 400_000)
    sender.begin(rest[:100_000])
    post.rig.run()
    assert reader.partial
    post.rig.advance(3 * PATIENCE_S)
    sender.link.send(rest[100_000:])
    sender.link.finish()
    post.rig.run()
    assert (reader.messages, released(sender)) == ([rest], 0)


def test_what_was_sent_settled_to_who_takes_nothing_is_not_thrown_away(post: Post) -> None:
    stuck, sender = post.consumer("stuck", credit=0), post.sender(capacity=40)
    for number in range(15):
        sender.send(to("stuck", f"settled {number}"), settled=True)
        sender.send(to("stuck", f"unsettled {number}"))
    post.rig.advance(2 * PATIENCE_S)
    sender.send(*[to("stuck", f"settled {number}") for number in range(15, 18)], settled=True)
    post.rig.run()
    stuck.link.grant(100)
    post.rig.run()
    assert [message for message in stuck.messages if b"unsettled" not in message] == [
        to("stuck", f"settled {number}") for number in range(18)
    ]
    assert released(sender) + len(stuck.messages) == 33


def test_what_was_sent_settled_is_not_thrown_away_for_a_large_message_behind_it(post: Post) -> None:
    stuck, sender = post.consumer("stuck", credit=0), post.sender(capacity=40)
    sender.send(to("stuck", "settled"), settled=True)
    large = to("stuck", "x" * 200_000)
    sender.begin(large[:150_000])
    post.rig.run()
    post.rig.advance(2 * PATIENCE_S)
    sender.link.send(large[150_000:])
    sender.link.finish()
    post.rig.run()
    stuck.link.grant(10)
    post.rig.run()
    assert (stuck.messages, released(sender)) == ([to("stuck", "settled"), large], 0)


def test_who_looks_after_what_stands_still_does_so_once(post: Post) -> None:
    post.consumer("stuck", credit=0)
    sender = post.sender(capacity=40)
    looks: list[int] = []
    for _ in range(6):
        sender.send(to("stuck", "x" * 200_000))
        sender.send(to("stuck"))
        post.rig.advance(2 * PATIENCE_S)
        looks.append(sum(timer.action is not None for _, _, timer in post.rig.timers._heap))
    assert looks == [1] * 6
    sender.link.close()
    post.rig.run()
    assert post.rig.timers.next_deadline() is None


def test_who_grants_credit_again_has_missed_nothing_that_came_since(post: Post) -> None:
    sender = post.sender(capacity=40)
    consumers = [post.consumer(f"stuck-{number}", credit=0) for number in range(20)]
    for number in range(20):
        sender.send(to(f"stuck-{number}", "1"), to(f"stuck-{number}", "2"))
    post.rig.advance(2 * PATIENCE_S)
    consumers[7].link.grant(5)
    post.rig.run()
    before = released(sender)
    sender.send(to("stuck-7", "3"))
    post.rig.run()
    assert released(sender) == before
    assert consumers[7].messages[-1] == to("stuck-7", "3")


def test_a_sender_that_leaves_while_an_address_stands_still_leaves_no_timer(post: Post) -> None:
    _, _, sender = held_up(post)
    sender.link.close()
    post.rig.run()
    assert post.rig.timers.next_deadline() is None


def test_of_a_sender_whose_link_was_ended_nothing_more_is_looked_at(post: Post):
    consumer, sender = post.consumer("a"), post.sender()
    sender.connection.is_stalled = True
    first = sender.begin(bytes(100_000))
    post.rig.run()
    sender.link.abort(first)
    sender.begin(to("a", "x" * 100_000))
    post.rig.run()
    assert (consumer.messages, consumer.partial) == ([], b"")
    sender.connection.is_stalled = False
    post.rig.run()
    assert sender.error is not None


def test_when_it_is_lost_what_was_passed_on_goes_on_and_what_waits_is_forgotten(post: Post):
    consumer, sender = post.consumer("a", credit=1), post.sender()
    sender.send(to("a", "1"), to("a", "2"))
    post.rig.run()
    post.rig.cut(sender.connection)
    consumer.link.grant(10)
    post.rig.run()
    assert consumer.messages == [to("a", "1")]
    assert post.groups["a"].inlets == {}


def test_groups_that_it_sends_nothing_to_any_more_lose_it(post: Post):
    sender, consumer = post.sender(), post.consumer("kept")
    sender.send(to("kept"))
    post.rig.run()
    for number in range(1200):
        sender.send(to(f"unused/{number}"), settled=True)
        if number % 5 == 0:
            post.rig.advance(post.rig.settings.path_wait_s)
    consumer.answer()
    post.rig.run()
    assert sum(bool(group.inlets) for group in post.groups.values()) <= 1000
    assert [told(outcome) for _, outcome in sender.outcomes] == [told(ACCEPTED)]
    sender.send(to("kept"))
    post.rig.run()
    assert consumer.messages == [to("kept")] * 2
