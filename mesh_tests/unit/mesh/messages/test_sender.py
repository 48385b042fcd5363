"""`send` is patient with a message that moves, however slowly, and not with one that has stopped."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from mesh.client.errors import TimedOut
from mesh.messages.large_body import Filler
from mesh.messages.sender import MessageSender, SendRequest, Tally, endless
from wire.delivery import ACCEPTED
from wire.message import Message

PATIENCE_S = 0.2
MOVES = 6


class MovingSender:
    """Takes one piece each half of the patience, ``moves`` of them; then it is stuck, or done if that is all."""

    address = "orders"
    unsettled = 0

    def __init__(self, moves: int) -> None:
        self._moves = moves

    async def send(self, pieces: Iterable[bytes], on_moved: Callable[[], None]) -> asyncio.Future[Any]:
        for _ in range(self._moves):
            await asyncio.sleep(PATIENCE_S / 2)
            on_moved()
        if self._moves < MOVES:
            await asyncio.get_running_loop().create_future()
        outcome = asyncio.get_running_loop().create_future()
        outcome.set_result(ACCEPTED)
        return outcome


def ship(moves: int) -> Tally:
    async def run() -> Tally:
        tally = Tally()
        order = SendRequest(endless(Filler(100_000)), Message(), timeout_s=PATIENCE_S)
        await MessageSender(MovingSender(moves), order, tally).run()  # type: ignore[arg-type]
        return tally

    return asyncio.run(run())


def test_a_message_that_takes_longer_than_the_timeout_but_moves_is_sent() -> None:
    assert ship(MOVES).to_map()["accepted"] == 1


def test_a_message_that_stops_moving_is_told_with_its_size() -> None:
    with pytest.raises(TimedOut, match=r"a message of 1000\d\d bytes was begun, and no byte of it moved for 0\.2 s"):
        ship(2)


def test_a_message_that_never_began_had_no_credit() -> None:
    with pytest.raises(TimedOut, match=r"no credit for orders within 0\.2 s"):
        ship(0)
