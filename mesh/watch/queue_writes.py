"""Shows and changes the messages of a queue at an embedded broker, by requests to the broker's control address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from addressing.address import Address
from addressing.book import SpaceBooks
from addressing.pattern import is_pattern
from addressing.topology.model import Topology
from mesh.terminal.counts import number_of
from mesh.watch.mesh_requests import MeshRequests, refused_by
from mesh.watch.write_request import WriteRefused, WriteRequest

PAGE: Final = 100
"""The most messages of a page of a queue."""
MOST_COUNTED: Final = 1000
"""A dry run counts single messages among so many; beyond, it answers the most that there can be."""


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """A queue or subscription: ``address`` is the name at ``broker``, ``mesh_address`` the name that clients use."""

    broker: str
    address: str
    mesh_address: str
    subscriber: str | None

    @property
    def named(self) -> dict[str, Any]:
        """The arguments that name the queue in a request to the broker."""
        return {"address": self.address} | ({} if self.subscriber is None else {"subscriber": self.subscriber})


class QueueWrites:
    """The changes of queues at the embedded brokers of ``topology``."""

    def __init__(self, topology: Topology, requests: MeshRequests) -> None:
        self._topology, self._requests = topology, requests
        self._books = SpaceBooks(topology)

    async def browse(self, place: QueuePlace, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return a page of the messages: `messages`, `next`, `last` and `scanned`, as the broker answers."""
        return await self._ask(place.broker, {"op": "browse", **place.named, **arguments}, is_begun=False)

    async def depth(self, place: QueuePlace) -> int | None:
        """Return how many messages wait in the queue; None if there is no such queue any more."""
        request = {"op": "show", **place.named, "messages": 0}
        try:
            shown = await self._ask(place.broker, request, is_begun=False)
        except WriteRefused as refused:
            if refused.status != 409:
                raise
            return None
        queues = [each for each in shown["queues"] if each["address"] == place.address] or shown["queues"]
        return sum(int(each["available_count"]) for each in queues)

    def other_addresses(self, request: WriteRequest) -> tuple[str, ...]:
        """Return the mesh addresses that ``request`` names, beside the queue's own."""
        return tuple(request.arguments[name] for name in ("target", "to") if name in request.arguments)

    # What a change would do

    async def preview(self, place: QueuePlace, request: WriteRequest, depth: int) -> dict[str, Any]:
        """Return what ``request`` would do, without doing it: `messages`, and `at_most` if fewer are possible."""
        arguments = request.arguments
        self._translated(place, arguments)
        match request.operation.name:
            case "send":
                self._check_sendable(place)
                return {"messages": 1}
            case "delete":
                if depth and not arguments.get("force"):
                    raise _not_empty(depth)
                return {"messages": depth, "at_most": False}
            case "purge":
                return await self._counted(place, depth, up_to=arguments["up_to"])
        if "numbers" in arguments:
            return await self._counted(place, depth, numbers=arguments["numbers"])
        if "up_to" in arguments:
            return await self._counted(place, depth, up_to=arguments["up_to"])
        most = min(depth, arguments.get("count", depth))
        # Dead letters without a queue to go back to stay, and so do messages for which the other queue has no room.
        return {"messages": most, "at_most": True}

    async def _counted(
        self, place: QueuePlace, depth: int, *, up_to: int | None = None, numbers: tuple[int, ...] = ()
    ) -> dict[str, Any]:
        wanted = frozenset(numbers)
        last = max(numbers) if up_to is None else up_to
        count = seen = 0
        after: int | None = min(numbers) - 1 if min(numbers, default=0) > 0 else None
        while seen < MOST_COUNTED:
            page = await self.browse(place, {"limit": PAGE} | ({} if after is None else {"after": after}))
            messages = page["messages"]
            count += sum(
                not each["is_locked"] and (each["number"] in wanted if wanted else each["number"] <= last)
                for each in messages
            )
            seen += PAGE
            after = page["next"]
            if after is None or not messages or messages[-1]["number"] >= last:
                return {"messages": count, "at_most": False}
        return {"messages": min(depth, len(numbers) or depth), "at_most": True}

    # Changes

    async def run(self, place: QueuePlace, request: WriteRequest, routers: tuple[str, ...]) -> dict[str, Any]:
        """Do what ``request`` says, and return what was done. ``routers``: those to send a message through."""
        operation, arguments = request.operation.name, dict(request.arguments)
        if operation == "send":
            self._check_sendable(place)
            with refused_by(place.broker, is_begun=True):
                router = await self._requests.send(routers, place.mesh_address, arguments["message"].encoded)
            return {"messages": 1, "router": router}
        if operation == "delete" and not arguments.get("force") and (depth := await self.depth(place)):
            raise _not_empty(depth)
        named = place.named
        if operation == "move":
            named["source"] = named.pop("address")
        arguments = {name: list(value) if isinstance(value, tuple) else value for name, value in arguments.items()}
        return await self._ask(
            place.broker, {"op": operation, **named, **self._translated(place, arguments)}, is_begun=True
        )

    def _translated(self, place: QueuePlace, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``arguments`` with the names that their addresses have at the broker."""
        found = dict(arguments)
        for name in ("target", "to"):
            if name in found:
                found[name] = self._name_at(place.broker, found[name], name)
        return found

    def _name_at(self, broker: str, address: str, member: str) -> str:
        if is_pattern(address):
            raise WriteRefused(400, f"expected the address of one queue as {member}, got a pattern", member)
        policy = self._books.resolve(Address.parse(address))
        if policy is None or policy.kind.has_subscriptions or broker not in policy.brokers:
            raise WriteRefused(
                400, f"the topology has no queue of this address at {broker}, where the messages are", member,
                self._queues_at(broker),
            )  # fmt: skip
        return policy.at_broker(broker)

    def _queues_at(self, broker: str) -> tuple[str, ...]:
        declared = self._topology.addresses.items()
        return tuple(
            name
            for name, entry in declared
            if entry.type.is_stored and not entry.type.has_subscriptions and broker in self._topology.brokers_of(entry)
        )

    def _check_sendable(self, place: QueuePlace) -> None:
        if place.subscriber is not None or is_pattern(place.mesh_address):
            raise WriteRefused(409, "messages reach a subscription by its topic: expected a queue to send to")

    async def _ask(self, broker: str, request: Mapping[str, Any], *, is_begun: bool) -> dict[str, Any]:
        """Return the parts of the answer as one: messages are added up, lists are joined, and of others the last holds.

        A failure says how many messages were done before.
        """
        parts: list[Mapping[str, Any]] = []
        try:
            with refused_by(broker, is_begun=is_begun):
                await self._requests.ask_broker(broker, request, parts)
        except WriteRefused as refused:
            done = sum(int(part.get("messages", 0)) for part in parts) if is_begun else 0
            if not done:
                raise
            raise WriteRefused(
                refused.status, f"{refused.sentence} After {done:,} messages.", is_uncertain=True
            ) from None
        return joined(parts)


def joined(parts: list[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            is_sum = name in found and (name == "messages" or isinstance(value, list))
            found[name] = found[name] + value if is_sum else value
    return found


def _not_empty(depth: int) -> WriteRefused:
    return WriteRefused(
        409,
        f"the queue has {number_of(depth, 'message')} that {'wait' if depth != 1 else 'waits'}: purge first, or "
        "delete what waits with the queue by force",
    )
