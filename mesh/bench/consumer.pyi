from array import array

from mesh.bench.carrier import Link
from mesh.bench.producer import PacedProducer

class Consumer(Link):
    count: int
    received: int
    doubled: int
    reordered: int
    foreign: int
    damaged: int
    def __init__(
        self,
        channel: int,
        what: str,
        next_incoming_id: int,
        delivery_count: int,
        *,
        run: int,
        count: int,
        body_bytes: int,
        window: int,
        is_each: bool = False,
    ) -> None: ...

class HoldingConsumer(Consumer): ...

class TimedConsumer(Consumer):
    def __init__(
        self,
        channel: int,
        what: str,
        next_incoming_id: int,
        delivery_count: int,
        *,
        source: PacedProducer,
        run: int,
        body_bytes: int,
        window: int,
        is_each: bool = False,
    ) -> None: ...
    @property
    def samples(self) -> tuple[array[int], array[int]]: ...
