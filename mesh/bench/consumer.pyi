from array import array

from mesh.bench.bench_connection import BenchLink
from mesh.bench.producer import PacedProducer

class BenchConsumer(BenchLink):
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

class HoldingConsumer(BenchConsumer): ...

class TimedConsumer(BenchConsumer):
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
