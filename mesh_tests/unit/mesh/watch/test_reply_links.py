"""Answers go over links that stay: one for each address, a few at most, and none that holds up another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.client.errors import MeshError, TimedOut, Unreachable
from mesh.client.links import LinkRefusedError
from mesh.watch import reply_links
from mesh.watch.reply_links import IDLE_S, LARGE_BYTES, MAX_LINKS, ReplyLinks
from wire.delivery import ACCEPTED, RELEASED, Outcome, rejected
from wire.errors import AmqpError

SMALL, LARGE = b"s", bytes(LARGE_BYTES + 1)
SHORT_S, LONG_S = 0.01, 30.0


class MemorySender:
    def __init__(self, client: MemoryClient, address: str, is_apart: bool) -> None:
        self._client = client
        self.address, self.is_apart = address, is_apart
        self.error: MeshError | None = None
        self.is_closed = False
        self.sent: list[bytes] = []

    async def send(self, data: bytes) -> asyncio.Future[Outcome | None]:
        assert not self.is_closed
        await self._client.credit_at(self.address).wait()
        self.sent.append(data)
        future: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
        self._client.under_way[self.address] = future
        outcome = self._client.outcomes.get(self.address, ACCEPTED)
        if isinstance(outcome, MeshError):
            self.error = outcome
            future.set_exception(outcome)
        elif outcome is not None:
            future.set_result(outcome)
        return future

    def close(self) -> None:
        assert not self.is_closed
        self.is_closed = True


class MemoryClient:
    """``outcomes``: by address the outcome of each delivery, or the error of its link; None for none. Else ACCEPTED."""

    def __init__(self) -> None:
        self.senders: list[MemorySender] = []
        self.outcomes: dict[str, Outcome | MeshError | None] = {}
        self.refused: set[str] = set()
        self.under_way: dict[str, asyncio.Future[Outcome | None]] = {}
        self._credit: dict[str, asyncio.Event] = {}
        self.now_s = 100.0
        self.links = ReplyLinks(self, lambda: self.now_s)  # type: ignore[arg-type]

    async def sender(self, address: str | None, *, is_apart: bool = False) -> MemorySender:
        assert address is not None
        await asyncio.sleep(0)
        if address in self.refused:
            raise LinkRefusedError(AmqpError("amqp:not-found", "no receiver"), address)
        self.senders.append(MemorySender(self, address, is_apart))
        return self.senders[-1]

    def credit_at(self, address: str) -> asyncio.Event:
        if address not in self._credit:
            self._credit[address] = asyncio.Event()
            self._credit[address].set()
        return self._credit[address]

    @property
    def open(self) -> list[MemorySender]:
        return [each for each in self.senders if not each.is_closed]


def in_loop(test: Callable[[MemoryClient], Awaitable[None]]) -> None:
    async def run() -> None:
        await test(MemoryClient())

    asyncio.run(run())


def test_answers_to_one_address_go_over_one_link() -> None:
    async def test(client: MemoryClient) -> None:
        for _ in range(3):
            assert await client.links.deliver("a", SMALL, LONG_S) == ACCEPTED
        await asyncio.gather(*(client.links.deliver(each, SMALL, LONG_S) for each in "aabb"))
        assert [(each.address, len(each.sent)) for each in client.senders] == [("a", 5), ("b", 2)]

    in_loop(test)


def test_a_large_answer_goes_over_a_link_in_a_session_of_its_own() -> None:
    async def test(client: MemoryClient) -> None:
        for message in (SMALL, LARGE, SMALL, LARGE, LARGE[1:]):
            await client.links.deliver("a", message, LONG_S)
        assert [(each.is_apart, len(each.sent)) for each in client.senders] == [(False, 3), (True, 2)]

    in_loop(test)


def test_an_answer_without_credit_holds_up_no_other_and_loses_its_link() -> None:
    async def test(client: MemoryClient) -> None:
        client.credit_at("slow").clear()
        late = asyncio.create_task(client.links.deliver("slow", SMALL, SHORT_S))
        assert await client.links.deliver("fast", SMALL, LONG_S) == ACCEPTED
        with pytest.raises(TimedOut, match=r"slow took no message within 0\.01 s"):
            await late
        assert [each.address for each in client.open] == ["fast"]
        client.credit_at("slow").set()
        assert await client.links.deliver("slow", SMALL, LONG_S) == ACCEPTED

    in_loop(test)


def test_a_link_that_is_given_up_stays_open_for_the_answers_under_way() -> None:
    async def test(client: MemoryClient) -> None:
        client.outcomes["a"] = None
        early = asyncio.create_task(client.links.deliver("a", SMALL, LONG_S))
        for _ in range(5):
            await asyncio.sleep(0)
        answered = client.under_way["a"]
        with pytest.raises(TimedOut):
            await client.links.deliver("a", SMALL, SHORT_S)
        assert len(client.open) == 1
        assert len(client.links) == 0
        answered.set_result(ACCEPTED)
        assert await early == ACCEPTED
        assert client.open == []

    in_loop(test)


@pytest.mark.parametrize("outcome", [RELEASED, None, Unreachable("detached")])
def test_a_link_whose_client_has_gone_is_closed_and_the_next_answer_has_another(
    outcome: Outcome | MeshError | None,
) -> None:
    async def test(client: MemoryClient) -> None:
        client.outcomes["a"] = outcome
        if isinstance(outcome, MeshError) or outcome is None:
            with pytest.raises(MeshError):
                await client.links.deliver("a", SMALL, SHORT_S)
        else:
            assert await client.links.deliver("a", SMALL, LONG_S) == outcome
        assert client.open == []
        client.outcomes["a"] = ACCEPTED
        assert await client.links.deliver("a", SMALL, LONG_S) == ACCEPTED
        assert len(client.open) == 1

    in_loop(test)


def test_a_link_whose_message_was_rejected_stays() -> None:
    async def test(client: MemoryClient) -> None:
        client.outcomes["a"] = rejected("amqp:decode-error", "no")
        await client.links.deliver("a", SMALL, LONG_S)
        await client.links.deliver("a", SMALL, LONG_S)
        assert len(client.senders) == 1

    in_loop(test)


def test_a_link_that_ended_meanwhile_is_not_used_again() -> None:
    async def test(client: MemoryClient) -> None:
        await client.links.deliver("a", SMALL, LONG_S)
        client.senders[0].error = Unreachable("detached")
        await client.links.deliver("a", SMALL, LONG_S)
        assert [len(each.sent) for each in client.senders] == [1, 1]

    in_loop(test)


def test_a_refused_attach_is_told_to_all_who_wait_for_it_and_is_tried_again() -> None:
    async def test(client: MemoryClient) -> None:
        client.refused.add("a")
        told = await asyncio.gather(
            *(client.links.deliver("a", SMALL, LONG_S) for _ in range(3)), return_exceptions=True
        )
        assert [type(each) for each in told] == [LinkRefusedError] * 3
        client.refused.clear()
        assert await client.links.deliver("a", SMALL, LONG_S) == ACCEPTED

    in_loop(test)


def test_a_link_is_closed_after_a_while_without_use() -> None:
    async def test(client: MemoryClient) -> None:
        await client.links.deliver("a", SMALL, LONG_S)
        client.now_s += IDLE_S / 2
        await client.links.deliver("b", SMALL, LONG_S)
        client.now_s += IDLE_S / 2
        client.links.close_idle()
        assert [each.address for each in client.open] == ["b"]

    in_loop(test)


@given(
    steps=st.lists(st.tuples(st.integers(0, 6), st.booleans(), st.sampled_from(["done", "late", "gone", "idle"]))),
    bound=st.integers(1, 4),
)
def test_a_bound_holds_and_the_links_used_last_are_kept_whatever_is_sent(
    steps: list[tuple[int, bool, str]], bound: int
) -> None:
    async def test(client: MemoryClient) -> None:
        kept: list[tuple[str, bool]] = []
        for number, is_large, what in steps:
            address, key = f"a{number}", (f"a{number}", is_large)
            is_new = key not in kept
            before = len(client.senders)
            client.outcomes[address] = {"late": None, "gone": RELEASED}.get(what, ACCEPTED)
            sent: Any = client.links.deliver(address, LARGE if is_large else SMALL, 0 if what == "late" else LONG_S)
            await asyncio.gather(sent, return_exceptions=True)
            await asyncio.sleep(0)
            kept = [each for each in kept if each != key]
            if what in ("done", "idle"):
                assert len(client.senders) == before + is_new
                kept.append(key)
            del kept[: max(0, len(kept) - bound)]
            if what == "idle":
                client.now_s += IDLE_S
                client.links.close_idle()
                kept.clear()
            assert [(each.address, each.is_apart) for each in client.open] == sorted(
                kept, key=[(each.address, each.is_apart) for each in client.open].index
            )
            assert len(client.links) == len(kept) <= bound

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reply_links, "MAX_LINKS", bound)
        in_loop(test)


def test_links_with_answers_under_way_are_kept_beyond_the_bound() -> None:
    async def test(client: MemoryClient) -> None:
        addresses = [f"a{number}" for number in range(MAX_LINKS + 5)]
        for address in addresses:
            client.credit_at(address).clear()
        under_way = [asyncio.create_task(client.links.deliver(each, SMALL, LONG_S)) for each in addresses]
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(client.links) == MAX_LINKS + 5
        for address in addresses:
            client.credit_at(address).set()
        assert await asyncio.gather(*under_way) == [ACCEPTED] * len(addresses)
        assert len(client.links) == len(client.open) == MAX_LINKS

    in_loop(test)
