"""Two endpoints joined by an in-memory pipe, with a sink that remembers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wire import delivery as deliveries
from wire.endpoint import Endpoint, EndpointSettings
from wire.events import LinkAttached, SessionBegun


@dataclass
class Recorder:
    """A sink that notes what it is told, and takes complete messages."""

    messages: list[bytes] = field(default_factory=list)
    dispositions: list[tuple[Any, Any]] = field(default_factory=list)
    flows: list[Any] = field(default_factory=list)
    takes: bool = True

    def on_delivery(self, link: Any, delivery: Any) -> None:
        if not self.takes or deliveries.is_partial(delivery):
            return
        if deliveries.is_aborted(delivery):
            link.advance()
            deliveries.settle(delivery)
            self.messages.append(b"<aborted>")
            return
        self.messages.append(link.recv(deliveries.pending(delivery)))
        link.advance()

    def on_disposition(self, link: Any, delivery: Any) -> None:
        self.dispositions.append((link, delivery))

    def on_flow(self, link: Any) -> None:
        self.flows.append(link)


def send(link: Any, body: bytes, tag: bytes = b"t") -> Any:
    """One whole message, credit or not; its delivery."""
    delivery = link.start(tag)
    link.send(body)
    link.finish()
    return delivery


class Pipe:
    """``a`` and ``b``, open, with the events each of them got."""

    def __init__(self, **b_settings: Any) -> None:
        self.a = Endpoint(EndpointSettings("a"))
        self.b = Endpoint(EndpointSettings("b", **b_settings))
        self.sinks = {self.a: Recorder(), self.b: Recorder()}
        self.events: dict[Endpoint, list[Any]] = {self.a: [], self.b: []}
        self.a.open()
        self.b.open()
        self.run()

    def run(self) -> None:
        """Move bytes until neither side has more to say."""
        moved = True
        while moved:
            moved = False
            for origin, goal in ((self.a, self.b), (self.b, self.a)):
                while chunk := origin.output():
                    goal.receive(chunk)
                    moved = True
                self.events[goal] += goal.drain(self.sinks[goal])
        self.events[self.a] += self.a.drain(self.sinks[self.a])

    def take(self, endpoint: Endpoint, kind: type) -> list[Any]:
        found = [event for event in self.events[endpoint] if isinstance(event, kind)]
        self.events[endpoint] = [event for event in self.events[endpoint] if not isinstance(event, kind)]
        return found

    def link_pair(self, name: str = "link", window: int | None = None) -> tuple[Any, Any]:
        """(outgoing of a, incoming of b), attached."""
        from wire.terminus import source, target

        sender = self.a.begin().sender(name)
        sender.set_source(source("here"))
        sender.set_target(target("there"))
        sender.open()
        self.run()
        self.take(self.b, SessionBegun)
        (attached,) = self.take(self.b, LinkAttached)
        attached.link.accept_as_proposed()
        self.run()
        return sender, attached.link
