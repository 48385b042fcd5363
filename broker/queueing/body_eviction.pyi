from collections.abc import Sequence

from broker.queueing.held_queue import HeldQueue

CROWDED_BYTES: int

class BodyEviction:
    def take_given_way(self) -> Sequence[tuple[HeldQueue, int, int]]: ...
