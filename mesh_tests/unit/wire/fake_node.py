"""A node that opens what it is given, takes every link, and remembers what the driver told it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from wire.core import DirtyEndpoints
from wire.endpoint import Endpoint, EndpointSettings, Peer
from wire.events import Closed, LinkAttached, Opened
from wire.log import LogEvent
from wire.node import Command

T = TypeVar("T")


class FakeNode:
    def __init__(self, container_id: str = "fake", **settings: Any) -> None:
        self.dirty = DirtyEndpoints()
        self.commands: list[Command] = []
        self.endpoints: list[Endpoint] = []
        self.peers: list[Peer] = []
        self.opened: list[Endpoint] = []
        self.closed: list[Any] = []
        self.failed: list[tuple[str, str]] = []
        self.disconnected: list[tuple[Endpoint, str]] = []
        self.writable: list[Endpoint] = []
        self.deadline: float | None = None
        self.times: list[float] = []
        self.on_link: Callable[[Any], None] = lambda link: link.accept_as_proposed()
        self.on_gone: Callable[[], None] = lambda: None
        self.settings = EndpointSettings(container_id, **settings)
        self.changed = asyncio.Event()

    async def wait(self, condition: Callable[[], T], timeout_s: float = 5.0) -> T:
        """Wait until ``condition`` is true; it is looked at after each input."""
        async with asyncio.timeout(timeout_s):
            while not (value := condition()):
                self.changed.clear()
                await self.changed.wait()
        return value

    def on_accepted(self, listener: str, peer: Peer, now: float) -> Endpoint:
        endpoint = Endpoint(self.settings, peer, self.dirty)
        endpoint.open()
        self.endpoints.append(endpoint)
        self.peers.append(peer)
        return endpoint

    def on_connected(self, connector: str, peer: Peer, now: float) -> Endpoint:
        return self.on_accepted(connector, peer, now)

    def on_connect_failed(self, connector: str, reason: str, now: float) -> None:
        self.failed.append((connector, reason))
        self.changed.set()

    def on_input(self, endpoint: Endpoint, now: float) -> None:
        for event in endpoint.drain(self):
            match event:
                case Opened():
                    self.opened.append(endpoint)
                case Closed(error):
                    self.closed.append(error)
                case LinkAttached(link):
                    self.on_link(link)
        self.changed.set()

    def on_writable(self, endpoint: Endpoint, now: float) -> None:
        self.writable.append(endpoint)
        self.changed.set()

    def on_disconnected(self, endpoint: Endpoint, reason: str, now: float) -> None:
        self.disconnected.append((endpoint, reason))
        self.on_gone()
        self.changed.set()

    def on_time(self, now: float) -> None:
        self.deadline = None
        self.times.append(now)
        self.changed.set()

    def next_deadline(self) -> float | None:
        return self.deadline

    # A sink
    def on_delivery(self, link: Any, delivery: Any) -> None:
        """Left where it is."""

    def on_disposition(self, link: Any, delivery: Any) -> None:
        """Not looked at."""

    def on_flow(self, link: Any) -> None:
        """Not looked at."""


class Paper:
    """A log on which a test can wait for a line."""

    def __init__(self) -> None:
        self.events: list[LogEvent] = []
        self._changed = asyncio.Event()

    def emit(self, event: LogEvent) -> None:
        self.events.append(event)
        self._changed.set()

    async def wait_for(self, kind: type[T], count: int = 1, timeout_s: float = 5.0) -> list[T]:
        async with asyncio.timeout(timeout_s):
            while len(found := self.of(kind)) < count:
                self._changed.clear()
                await self._changed.wait()
        return found

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]
