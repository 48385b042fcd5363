"""Does every producer get its turn at a consumer that takes one message at a time? Through sockets, all over a line."""

from __future__ import annotations

from contextlib import ExitStack

from mesh_tests.egress import BETWEEN
from mesh_tests.live.wire_client import WireClient, wait_with

PRODUCERS_EACH = 4
TURNS = 3
MOST_TIMES_THE_LEAST = 4
DONE_S = 20.0


def test_twelve_producers_at_three_routers_share_a_consumer_with_credit_one(rows, consumer, work):
    receiver = consumer.receiver(work, credit=1)
    with ExitStack() as stack:
        clients = [stack.enter_context(WireClient(rows.port(router))) for router in BETWEEN]
        senders = {client.sender(work): client for client in clients for _ in range(PRODUCERS_EACH)}
        owners = {}

        def accepted():
            shares = dict.fromkeys(senders, 0)
            for (client, number), link in owners.items():
                shares[link] += number in client.outcomes
            return shares.values()

        def go_on():
            for link, client in senders.items():
                while link.credit > 0:
                    owners[client, client.send(link, "x")] = link
            receiver.grant(len(consumer.settle_all()))
            return min(accepted()) >= TURNS

        wait_with((*clients, consumer), go_on, f"{TURNS} turns of each", DONE_S)
        assert max(accepted()) <= MOST_TIMES_THE_LEAST * min(accepted())
