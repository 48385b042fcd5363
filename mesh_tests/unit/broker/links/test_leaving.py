"""What a consumer had without an outcome when it left: was that an attempt?"""

from collections.abc import Callable

import pytest

from mesh_tests.unit.broker.rig import Client, Consumer, Rig
from wire.errors import AmqpError

Leave = Callable[[Client, Consumer], None]


def detach(client: Client, consumer: Consumer) -> None:
    consumer.link.detach()


def close_link(client: Client, consumer: Consumer) -> None:
    consumer.link.close()


def end_session(client: Client, consumer: Consumer) -> None:
    client.session.end()


def close_connection(client: Client, consumer: Consumer) -> None:
    client.near.close()


def detach_with_error(client: Client, consumer: Consumer) -> None:
    consumer.link.detach(AmqpError("amqp:internal-error", "it failed"))


def end_session_with_error(client: Client, consumer: Consumer) -> None:
    client.session.end(AmqpError("amqp:internal-error", "it failed"))


def close_connection_with_error(client: Client, consumer: Consumer) -> None:
    client.near.close(AmqpError("amqp:internal-error", "it failed"))


def vanish(client: Client, consumer: Consumer) -> None:
    client.vanish()


IN_ORDER = [detach, close_link, end_session, close_connection]
IN_DOUBT = [detach_with_error, end_session_with_error, close_connection_with_error, vanish]


@pytest.mark.parametrize("leave", [*IN_ORDER, *IN_DOUBT])
def test_an_attempt_is_what_did_not_end_in_order(rig: Rig, leave: Leave) -> None:
    rig.client().producer("orders").send("x")
    client = rig.client()
    consumer = client.consumer("orders")
    assert consumer.counts == [0]
    leave(client, consumer)
    rig.run()
    assert rig.client().consumer("orders").counts == [0 if leave in IN_ORDER else 1]


@pytest.mark.parametrize("leave", IN_ORDER)
def test_after_a_crash_a_second_sight_counts_though_the_first_was_given_back(rig: Rig, leave: Leave) -> None:
    rig.client().producer("orders").send("x")
    client = rig.client()
    consumer = client.consumer("orders")
    assert consumer.counts == [0]
    leave(client, consumer)
    rig.run()
    rig.crash()
    assert rig.client().consumer("orders").counts == [1]


@pytest.mark.parametrize("leave", IN_ORDER)
def test_what_is_on_its_way_in_pieces_is_given_back_uncounted(rig: Rig, leave: Leave) -> None:
    rig.client().producer("orders").send("x" * 3_000_000)
    client = rig.client()
    consumer = client.consumer("orders", credit=0)
    consumer.link.grant(1)
    rig.run_now()
    leave(client, consumer)
    rig.run()
    assert rig.client().consumer("orders").counts == [0]
