"""What the link log hears of a broker: who connects, which queues there are, and how much is in them.

Records of messages are made where these enter and leave queues (`broker.message_records`) and name queues by number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from addressing.link_log import Event, Kind
from broker.held_queue import HeldQueue
from wire.ended import without_words
from wire.endpoint import Endpoint
from wire.records import Recorder, set_now


class LinkLog:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._connections: dict[Endpoint, int] = {}
        self._last_number = 0

    # Connections
    def on_opened(self, endpoint: Endpoint) -> None:
        """The peer's OPEN says who it is."""
        remote, peer = endpoint.remote, endpoint.peer
        if not self._recorder.capacity or remote is None:
            return
        self._last_number += 1
        self._connections[endpoint] = self._last_number
        self._tell(
            Kind.CONNECTION,
            Event.OPENED,
            connection=self._last_number,
            role=str(peer.mesh_role) if peer.mesh_role is not None else "router",
            container=remote.container_id,
            user=peer.user or peer.mesh_name,
            remote_address=peer.remote_address,
        )

    def on_disconnected(self, endpoint: Endpoint, reason: str) -> None:
        number = self._connections.pop(endpoint, None)
        if number is not None:
            self._tell(Kind.CONNECTION, Event.CLOSED, connection=number, cause=without_words(reason))

    # Queues
    def settle(self) -> None:
        """Tell of the queues that came and went since the last time."""
        if self._recorder.has_changes:
            for held, is_there, _ in self._recorder.take_changes():
                self._tell_queue(held, Event.OPENED if is_there else Event.CLOSED)

    def on_second(self, now: float, oldest_us: Callable[[HeldQueue], int | None]) -> None:
        """What changes all the time is told once a second."""
        set_now(now)
        self.settle()
        self._recorder.end_second()
        for held in self._recorder.take_restless():
            held.rest()
            if not held.is_deleted:
                self._tell_depth(held, oldest_us(held))

    def _tell_queue(self, held: HeldQueue, event: Event) -> None:
        self._tell(Kind.QUEUE, event, queue=held.number, address=held.address, name=held.subscriber)

    def _tell_depth(self, held: HeldQueue, oldest_us: int | None) -> None:
        depth = held.queue.snapshot()
        count = depth.available_count + depth.acquired_count
        said = {"depth_count": count, "depth_bytes": depth.size_bytes, "oldest_us": oldest_us}
        self._tell(Kind.QUEUE, Event.CHANGED, queue=held.number, **said)

    def _tell(self, kind: Kind, event: Event, **columns: Any) -> None:
        said = {"kind": kind, "event": event, **columns}
        self._recorder.tell({name: value for name, value in said.items() if value is not None})
