"""Queues that clients make under a pattern: how many, whose, and for how long?"""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from addressing.address import Address
from addressing.topology.model import Topology
from broker.events import QueueExpired
from broker.queueing.client_queues import ClientQueues
from mesh_tests.unit.broker.rig import Consumer, Producer, Rig
from mesh_tests.unit.broker.store.format_4 import as_format_4
from wire.delivery import ACCEPTED, OutcomeCode

DAY_S = 86_400.0
NODES = {"mesh": "rig", "routers": {"r1": {}}, "brokers": {"b1": {"data": "unused"}}}


def rig_of(tmp_path: Path, **options: Any) -> Rig:
    addresses = {
        "q.#": {"type": "queue", **options},
        "other.*": "queue",
        "q.named": {"type": "queue", "dead_letter": "q.dead"},
        "renamed": {"type": "queue", "broker_address": "q.renamed"},
    }
    return Rig(tmp_path / "made", Topology.model_validate({**NODES, "addresses": addresses}))


def condition(end: Producer | Consumer) -> str | None:
    if end.detached is None:
        return None
    assert end.detached[1] is not None
    return end.detached[1].condition


def queues(rig: Rig) -> list[str]:
    return [queue.address for queue in rig.snapshot().queues]


def produce(rig: Rig, address: str | None, user: str | None = "alice") -> Producer:
    return rig.client().producer(address, user=user)


def make(rig: Rig, *addresses: str, user: str | None = "alice") -> None:
    for address in addresses:
        producer = produce(rig, address, user)
        assert condition(producer) is None
        producer.link.close()
        rig.run()


@pytest.mark.parametrize("does_restart", [False, True])
def test_a_pattern_has_no_more_queues_than_its_limit(tmp_path: Path, does_restart: bool) -> None:
    rig = rig_of(tmp_path, max_queues=3)
    make(rig, "q.1", "q.2", user="alice")
    make(rig, "q.3", user="bob")
    if does_restart:
        rig.restart()
    refused = [produce(rig, "q.4"), rig.client().consumer("q.4", user="bob"), produce(rig, "q.4", None)]
    assert [condition(end) for end in refused] == ["amqp:resource-limit-exceeded"] * 3
    assert refused[0].detached is not None
    assert "'q.#'" in str(refused[0].detached[1])
    assert condition(produce(rig, "q.1")) is None, "it is there already"
    make(rig, "other.1", "q.named", "q.renamed")


@pytest.mark.parametrize("does_restart", [False, True])
def test_a_user_makes_no_more_queues_than_the_limit_of_users(tmp_path: Path, does_restart: bool) -> None:
    rig = rig_of(tmp_path, max_queues_per_user=2)
    make(rig, "q.1", "q.2", user="alice")
    make(rig, "q.3", user="bob")
    if does_restart:
        rig.restart()
    assert condition(produce(rig, "q.4", "alice")) == "amqp:resource-limit-exceeded"
    make(rig, "q.4", user="bob")
    assert condition(produce(rig, "q.4", "alice")) is None, "whoever made it"
    make(rig, "q.5", "q.6", "q.7", user=None)


def test_the_limits_are_there_though_the_file_names_none(tmp_path: Path) -> None:
    policy = rig_of(tmp_path).node._made._policy_of(Address("", "q.1"))
    assert policy is not None
    assert (policy.max_queues, policy.max_queues_per_user, policy.expiry_s) == (100_000, 20_000, DAY_S)


def test_a_message_to_one_queue_too_many_is_rejected_with_the_reason(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, max_queues=1)
    anonymous = produce(rig, None)
    first, second = anonymous.send(to="q.1"), anonymous.send(to="q.2")
    assert anonymous.outcomes[first] == ACCEPTED
    outcome = anonymous.outcomes[second]
    assert outcome is not None
    assert outcome.kind is OutcomeCode.REJECTED
    assert outcome.error is not None
    assert outcome.error.condition == "amqp:resource-limit-exceeded"


def test_a_queue_that_nobody_uses_expires_and_makes_room_for_another(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, max_queues=1)
    make(rig, "q.1")
    rig.advance(DAY_S - 1)
    assert queues(rig) == ["q.1"]
    rig.advance(2)
    assert queues(rig) == []
    (event,) = [event for event in rig.log if isinstance(event, QueueExpired)]
    assert (event.address, event.owner, round(event.unused_s)) == ("q.1", "alice", round(DAY_S) + 1)
    make(rig, "q.2")


def test_an_expired_queue_is_gone_from_the_store(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    make(rig, "q.1")
    rig.advance(DAY_S + 1)
    rig.crash()
    assert queues(rig) == []


def test_a_queue_whose_name_stands_in_the_file_never_expires(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    make(rig, "q.named", "q.renamed", "q.dead")
    rig.advance(10 * DAY_S)
    rig.advance(10 * DAY_S)
    assert sorted(queues(rig)) == ["q.dead", "q.named", "q.renamed"]


@pytest.mark.parametrize("is_consumer", [False, True])
def test_a_queue_with_a_link_does_not_expire(tmp_path: Path, is_consumer: bool) -> None:
    rig = rig_of(tmp_path)
    client = rig.client()
    end = client.consumer("q.1", user="alice") if is_consumer else client.producer("q.1", user="alice")
    rig.advance(3 * DAY_S)
    assert queues(rig) == ["q.1"]
    end.link.close()
    rig.run()
    rig.advance(DAY_S - 1)
    assert queues(rig) == ["q.1"]
    rig.advance(2)
    assert queues(rig) == []


def test_a_queue_with_a_message_does_not_expire_until_it_is_empty(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    producer = produce(rig, "q.1")
    producer.send("kept")
    producer.link.close()
    rig.run()
    rig.advance(3 * DAY_S)
    assert queues(rig) == ["q.1"]
    consumer = rig.client().consumer("q.1")
    assert consumer.bodies == ["kept"]
    consumer.received[0].give(ACCEPTED)
    consumer.close()
    rig.advance(DAY_S + 1)
    assert queues(rig) == []


@pytest.mark.parametrize("does_crash", [False, True])
def test_a_restart_neither_forgets_a_use_nor_takes_it_for_a_new_one(tmp_path: Path, does_crash: bool) -> None:
    rig = rig_of(tmp_path)
    make(rig, "q.1")
    rig.advance(DAY_S * 0.6)
    rig.crash() if does_crash else rig.restart()
    rig.advance(DAY_S * 0.35)
    assert queues(rig) == ["q.1"]
    rig.advance(DAY_S * 0.1)
    assert queues(rig) == []


def test_a_queue_of_an_older_store_is_as_if_used_when_the_broker_started(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    make(rig, "q.1")
    rig.crash(lambda: as_format_4(rig.data))
    rig.advance(DAY_S - 1)
    assert queues(rig) == ["q.1"]
    rig.advance(2)
    assert queues(rig) == []


def test_links_that_come_and_go_write_the_time_of_use_now_and_then_only(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    make(rig, "q.1")
    seen = set()
    for _ in range(50):
        rig.advance(60)
        make(rig, "q.1")
        (held,) = [held for held in rig.node._message_store.every_queue() if held.address == "q.1"]
        assert held.row is not None
        seen.add(held.row.used_at_s)
    assert len(seen) <= 5, "50 minutes, and a hundredth of a day is a quarter of an hour"


def test_an_operator_sees_who_made_a_queue(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    make(rig, "q.1", user="bob")
    (held,) = rig.node._message_store.every_queue()
    assert held.owner == "bob"
    rig.restart()
    (held,) = rig.node._message_store.every_queue()
    assert held.owner == "bob"


@dataclass(eq=False)
class Held:
    """What `ClientQueues` asks of a queue."""

    address: str
    expiry_s: int
    producer_count: int = 0
    taker_count: int = 0
    coming_count: int = 0
    owner: None = None
    is_durable: bool = True
    is_subscription: bool = False
    row: Any = field(default_factory=lambda: SimpleNamespace(used_at_s=0))
    queue: Any = field(default_factory=lambda: SimpleNamespace(is_empty=True))


@pytest.mark.parametrize("seed", range(5))
def test_each_queue_expires_in_its_time_though_links_come_and_go(seed: int) -> None:
    random, deleted = Random(seed), list[Held]()
    queues = [Held(f"q.{number}", expiry_s) for number, expiry_s in enumerate(random.sample(range(5000, 50_000), 200))]
    message_store = SimpleNamespace(
        every_queue=lambda: queues, watch=lambda _: None, note_use=lambda *_: None, delete=deleted.append
    )
    policies = {Address.parse(held.address): SimpleNamespace(pattern="q.#", expiry_s=held.expiry_s) for held in queues}
    made: Any = ClientQueues(cast(Any, message_store), cast(Any, policies.get), 0.0, lambda _: None)
    made.begin(0)
    due = {held: held.expiry_s for held in queues}
    for now in range(4000):
        held = random.choice(queues)
        due[held] = now + held.expiry_s
        for held.taker_count in (1, 0):
            made.on_used(held, now)
    assert len(made._due) < 2 * len(due) + 101, "it has been pruned"
    for deadline in sorted(set(due.values())):
        assert made.next_deadline() == deadline
        made.on_time(deadline)
        assert due[deleted[-1]] == deadline
