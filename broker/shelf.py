"""Which bodies are in memory, and which must be fetched from the store?

Bodies that the store does not hold (yet) are pinned. The others stay while there is room, the oldest leaving first: a
consumer that keeps up never causes a read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from broker.store.batch import BodyRange

CACHE_BYTES = 64 << 20

OnBody = Callable[[bytes, float], None]


@dataclass(slots=True)
class Fetch:
    wanted: BodyRange
    on_body: OnBody


class Shelf:
    """Always: ``cached_bytes <= cache_bytes``."""

    def __init__(self, cache_bytes: int = CACHE_BYTES) -> None:
        self.pinned_bytes = 0
        self.cached_bytes = 0
        self._cache_bytes = cache_bytes
        self._pinned: dict[int, bytes] = {}
        self._cached: OrderedDict[int, bytes] = OrderedDict()
        self._fetches: list[Fetch] = []

    def pin(self, message_id: int, body: bytes) -> None:
        self._pinned[message_id] = body
        self.pinned_bytes += len(body)

    def unpin(self, message_id: int) -> None:
        """The store holds it now."""
        body = self._pinned.pop(message_id)
        self.pinned_bytes -= len(body)
        self._cached[message_id] = body
        self.cached_bytes += len(body)
        while self.cached_bytes > self._cache_bytes:
            self.cached_bytes -= len(self._cached.popitem(last=False)[1])

    def get(self, message_id: int) -> bytes | None:
        body = self._pinned.get(message_id)
        return self._cached.get(message_id) if body is None else body

    def forget(self, message_id: int) -> None:
        body = self._pinned.pop(message_id, None)
        if body is not None:
            self.pinned_bytes -= len(body)
        body = self._cached.pop(message_id, None)
        if body is not None:
            self.cached_bytes -= len(body)

    def fetch(self, wanted: BodyRange, on_body: OnBody) -> None:
        """Have ``on_body`` called with these bytes, later."""
        self._fetches.append(Fetch(wanted, on_body))

    def take_fetches(self) -> list[Fetch]:
        fetches, self._fetches = self._fetches, []
        return fetches
