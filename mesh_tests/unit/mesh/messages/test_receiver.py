"""When does `receive` stop waiting?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mesh.messages.receiver import ReceiveRequest, address_of, take_in_time
from wire.message import Message

TIMEOUT_S = 0.2


class Trickle:
    """A receiver whose next message comes in pieces, each sooner than the timeout, or falls silent after them."""

    def __init__(self, *, is_complete: bool) -> None:
        self.on_moved: Callable[[], None] = lambda: None
        self._is_complete = is_complete

    def top_up(self, bound: int | None) -> None: ...

    async def receive(self) -> str:
        for _ in range(5):
            await asyncio.sleep(TIMEOUT_S / 2)
            self.on_moved()
        if not self._is_complete:
            await asyncio.get_running_loop().create_future()
        return "all of it"


def take(receiver: Any) -> Any:
    return asyncio.run(take_in_time(receiver, ReceiveRequest(timeout_s=TIMEOUT_S), None))


def test_a_message_may_take_long_as_long_as_something_of_it_comes() -> None:
    assert take(Trickle(is_complete=True)) == "all of it"


def test_a_message_that_stops_halfway_is_not_waited_for() -> None:
    with pytest.raises(TimeoutError):
        take(receiver := Trickle(is_complete=False))
    receiver.on_moved()  # what still comes of it moves no limit any more


@pytest.mark.parametrize(
    ("annotations", "received_from", "address"),
    [
        ({"x-opt-to": "news.tea"}, "news.#", "news.tea"),
        ({}, "news.#", "news.#"),
        ({"x-opt-to": 7}, "news.#", "news.#"),
        ({"x-opt-to": "a producer's"}, "news.tea", "news.tea"),
    ],
)
def test_only_a_receiver_with_wildcards_takes_the_address_from_the_message(
    annotations: dict[str, Any], received_from: str, address: str
) -> None:
    assert address_of(Message(delivery_annotations=annotations), received_from) == address
