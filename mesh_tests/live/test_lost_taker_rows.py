"""What becomes of deliveries when a consumer is lost, gives them back or leaves, through real sockets?"""

from __future__ import annotations

import pytest

from mesh_tests.live.row_mesh import IMPATIENT, new_address, slow
from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED

GIVEN_BACK_S = 30.0
"""What nobody takes waits 2 s for somebody who does; a busy machine takes longer."""
CHUNK_BYTES = 65536
LARGE_BYTES = 200_000
SILENCE_S = 40.0
"""Ten times the idle timeout of that listener."""
ELSEWHERE = {"r1": "r2", "r2": "r3", "r3": "r1"}


@pytest.fixture
def other(rows, egress):
    """A consumer at another router than the first."""
    with WireClient(rows.port(ELSEWHERE[egress]), container_id="other") as client:
        yield client


@slow
def lose_a_consumer(rows, egress):
    """Outcomes of what it had, and of what it never got; nobody else takes it."""
    with WireClient(rows.port("r1")) as producer:
        mortal, written, unwritten = _one_written_and_one_not(rows, producer, egress, new_address("work"))
        mortal.kill()
        return producer.wait_outcome(written), producer.wait_outcome(unwritten, GIVEN_BACK_S)


def test_what_a_lost_consumer_never_got_is_released_and_what_it_had_is_modified(at_once, egress):
    assert at_once(lose_a_consumer, egress) == (MODIFIED_FAILED, RELEASED)


@slow
def leave_with_something_held(rows, egress):
    """The same of a consumer that detaches; and whether the producer's credit was taken back."""
    with WireClient(rows.port("r1")) as producer:
        leaving, written, unwritten = _one_written_and_one_not(rows, producer, egress, new_address("work"))
        with leaving:
            (receiver,) = leaving.endpoint.links
            receiver.close()
            leaving.wait(lambda: receiver.is_gone, "the answer to the detach")
            outcomes = producer.wait_outcome(written), producer.wait_outcome(unwritten, GIVEN_BACK_S)
        (sender,) = producer.endpoint.links
        producer.wait(lambda: sender.credit == 0, "credit to be taken back")
        return outcomes


def test_what_a_consumer_never_got_that_leaves_is_released_and_what_it_had_is_modified(at_once, egress):
    assert at_once(leave_with_something_held, egress) == (MODIFIED_FAILED, RELEASED)


@slow
def lose_a_consumer_beside_another(rows, egress):
    """The same, when another takes it; and what that got."""
    address = new_address("work")
    with WireClient(rows.port("r1")) as producer, WireClient(rows.port(ELSEWHERE[egress])) as other:
        mortal, written, unwritten = _one_written_and_one_not(rows, producer, egress, address)
        other.receiver(address, credit=10)
        _wait_takers(rows, address, 2)
        mortal.kill()
        wait_with((producer, other), lambda: other.arrived, "the delivery")
        bodies = [each.body for each in other.arrived]
        other.settle_all()
        return producer.wait_outcome(written), producer.wait_outcome(unwritten), bodies


def test_what_a_lost_consumer_never_got_goes_to_another(at_once, egress):
    assert at_once(lose_a_consumer_beside_another, egress) == (MODIFIED_FAILED, ACCEPTED, ["unwritten"])


def _one_written_and_one_not(rows, producer, egress, address):
    """A consumer, and the numbers of what it holds and of what came as far as it can without its credit."""
    mortal = WireClient(rows.port(egress), container_id="mortal")
    mortal.receiver(address, credit=2)
    sender = producer.sender(address)
    first, written = producer.send_when_due(sender), producer.send_when_due(sender, "written")
    mortal.wait_arrived(2).pop(0).settle(ACCEPTED)
    mortal.step()
    assert producer.wait_outcome(first) == ACCEPTED
    return mortal, written, producer.send_when_due(sender, "unwritten")


def test_a_message_whose_consumer_is_lost_in_the_middle_of_it_is_released(rows, producer, egress, work):
    """Nobody can have it, so it is not in doubt."""
    mortal = WireClient(rows.port(egress), container_id="mortal")
    receiver = mortal.receiver(work, credit=1)
    sender = producer.sender(work)
    producer.wait(lambda: sender.credit > 0, "credit")
    number = producer.send_bytes(sender, bytes(LARGE_BYTES), is_complete=False)
    wait_with((producer, mortal), lambda: mortal.partial_bytes(receiver) == LARGE_BYTES, "the first part")
    rows.lose(mortal, egress)
    sender.send(bytes(LARGE_BYTES))
    sender.finish()
    assert producer.wait_outcome(number) == RELEASED


@slow
def let_a_consumer_fall_silent(rows, egress):
    """What a producer hears of a delivery that it holds."""
    address = new_address("work")
    with WireClient(rows.port("r1")) as producer:
        silent = WireClient(rows.port(egress, IMPATIENT), idle_timeout_s=0)
        silent.receiver(address, credit=1)
        sender = producer.sender(address)
        wait_with((producer, silent), lambda: sender.credit > 0, "credit")
        number = producer.send_when_due(sender)
        wait_with((producer, silent), lambda: silent.arrived, "the message")
        outcome = producer.wait_outcome(number, SILENCE_S)
        silent.kill()
        return outcome


def test_what_a_consumer_had_that_falls_silent_is_modified_after_its_idle_timeout(at_once, egress):
    assert at_once(let_a_consumer_fall_silent, egress) == MODIFIED_FAILED


@slow
def lose_a_consumer_in_silence(rows, egress):
    """What a producer hears of a message to a consumer that falls silent, and whose socket is full."""
    address = new_address("work")
    with WireClient(rows.port("r1")) as producer:
        silent = WireClient(rows.port(egress, IMPATIENT), idle_timeout_s=0)
        silent.receiver(address, credit=1)
        sender = producer.sender(address)
        producer.wait(lambda: sender.credit > 0, "credit")
        number = producer.begin_delivery(sender)

        def is_answered():
            if number not in producer.outcomes and sender.is_writable:
                sender.send(bytes(CHUNK_BYTES))
            return not _connections(rows, egress, silent) or number in producer.outcomes

        wait_with([producer], is_answered, "the router to take the consumer for dead", SILENCE_S)
        producer.abort(number)
        silent.kill()


def _connections(rows, router, client):
    known = rows.snapshot(router)["node"]["connections"]
    return [each for each in known if each["remote_address"] == client.local_name]


def test_a_consumer_that_falls_silent_with_a_full_socket_is_taken_for_dead(at_once, egress):
    at_once(lose_a_consumer_in_silence, egress)


def _taken_while_another_waits(rows, producer, consumer, other, address):
    """A delivery that the consumer has: its number, and what arrived."""
    consumer.receiver(address, credit=10)
    number = producer.send_when_due(producer.sender(address))
    arrived = consumer.wait_arrived(1).pop()
    other.receiver(address, credit=10)
    _wait_takers(rows, address, 2)
    return number, arrived


def test_what_a_taker_released_is_offered_to_another_before_the_producer_hears(rows, producer, consumer, other, work):
    number, first = _taken_while_another_waits(rows, producer, consumer, other, work)
    first.settle(RELEASED)
    consumer.step()
    other.wait_arrived(1)
    assert number not in producer.outcomes
    other.settle_all()
    assert producer.wait_outcome(number) == ACCEPTED
    consumer.step(0.1)
    assert not consumer.arrived


def test_what_a_taker_released_is_offered_to_another_at_its_router(rows, producer, consumer, egress, work):
    with WireClient(rows.port(egress), container_id="neighbor") as neighbor:
        for client in (consumer, neighbor):
            client.receiver(work, credit=10)
        _wait_takers(rows, work, 2, at=egress)
        number = producer.send_when_due(producer.sender(work))
        wait_with((consumer, neighbor), lambda: consumer.arrived or neighbor.arrived, "the delivery")
        first, second = (consumer, neighbor) if consumer.arrived else (neighbor, consumer)
        first.arrived.pop().settle(RELEASED)
        first.step()
        second.wait_arrived(1)
        assert number not in producer.outcomes
        second.settle_all()
        assert producer.wait_outcome(number) == ACCEPTED
        first.step(0.1)
        assert not first.arrived


def test_what_every_taker_released_is_released(rows, producer, consumer, other, work):
    number, first = _taken_while_another_waits(rows, producer, consumer, other, work)
    first.settle(RELEASED)
    consumer.step()
    other.wait_arrived(1).pop().settle(RELEASED)
    other.step()
    assert producer.wait_outcome(number, GIVEN_BACK_S) == RELEASED


def _wait_takers(rows, address, count, at="r1"):
    """Until this router has so many to choose from."""

    def has_takers():
        addresses = rows.snapshot(at)["node"]["addresses"]
        return any(each["address"] == address and each["takers"] == count for each in addresses)

    wait_until(has_takers, 30.0, f"{count} takers")


# The last taker leaves
def send_across_the_last_taker(rows, egress, address):
    """Outcomes of deliveries that are sent with credit that is being taken back."""
    with WireClient(rows.port("r1")) as producer, WireClient(rows.port(egress)) as consumer:
        receiver = consumer.receiver(address, credit=100)
        sender = producer.sender(address)
        producer.wait(lambda: sender.credit > 10, "credit")
        receiver.close()
        consumer.wait(lambda: receiver.is_gone, "the answer to the detach")
        numbers = [producer.send(sender, "crosses") for _ in range(10)]
        outcomes = [producer.wait_outcome(number, GIVEN_BACK_S) for number in numbers]
        producer.wait(lambda: sender.credit == 0, "credit to be taken back")
        assert not sender.is_draining
        return outcomes


@slow
def cross_the_last_taker(rows, egress):
    return send_across_the_last_taker(rows, egress, new_address("work"))


@slow
def cross_the_last_taker_of_a_multicast(rows, egress):
    return send_across_the_last_taker(rows, egress, new_address("news"))


@pytest.mark.parametrize("scenario", [cross_the_last_taker, cross_the_last_taker_of_a_multicast])
def test_deliveries_that_cross_the_leaving_of_the_last_taker_are_released(at_once, scenario, egress):
    assert at_once(scenario, egress) == [RELEASED] * 10


@slow
def send_to_a_dead_dynamic_address(rows, egress):
    """Outcomes while its consumer lives, and when it is dead."""
    mortal = WireClient(rows.port(egress), container_id="mortal")
    replies = mortal.receiver(None, credit=10, is_dynamic=True)
    with WireClient(rows.port("r1")) as producer:
        sender = producer.sender(replies.remote_source.address)
        number = producer.send_when_due(sender)
        mortal.wait_arrived(1).pop().settle(ACCEPTED)
        mortal.step()
        alive = producer.wait_outcome(number)
        crossing = producer.send(sender, "crosses")
        mortal.kill()
        dead = producer.wait_outcome(crossing, GIVEN_BACK_S)
        producer.wait(lambda: sender.credit == 0, "credit to be taken back", GIVEN_BACK_S)
        return alive, dead


def test_what_is_sent_to_a_dynamic_address_whose_consumer_is_lost_is_given_back(at_once, egress):
    alive, dead = at_once(send_to_a_dead_dynamic_address, egress)
    assert alive == ACCEPTED
    assert dead in (RELEASED, MODIFIED_FAILED)
