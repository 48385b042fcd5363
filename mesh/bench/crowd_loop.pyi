from array import array

from mesh.bench.bench_connection import BenchConnection
from mesh.bench.consumer import BenchConsumer
from mesh.bench.producer import BenchProducer

class SharedReceipts:
    count: int
    received: int
    ended_at: float
    def __init__(self, count: int, is_timed: bool = False) -> None: ...
    @property
    def took_us(self) -> array[float]: ...

class SharingConsumer(BenchConsumer):
    def __init__(
        self,
        channel: int,
        what: str,
        next_incoming_id: int,
        delivery_count: int,
        *,
        receipts: SharedReceipts,
        run: int,
        body_bytes: int,
        window: int,
        is_each: bool = False,
    ) -> None: ...

class TurnProducer(BenchProducer):
    def __init__(
        self,
        channel: int,
        what: str,
        remote_window: int,
        *,
        index: int,
        step: int,
        run: int,
        count: int,
        body_bytes: int,
        frame_bytes: int,
        is_presettled: bool = False,
        is_durable: bool = False,
    ) -> None: ...

class SendingTurns:
    producers: list[TurnProducer]
    count: int
    released: int
    started_at: float
    def __init__(self, producers: list[TurnProducer], rate_per_s: float, count: int) -> None: ...

def run_crowd(
    carriers: list[BenchConnection],
    receipts: SharedReceipts,
    stall_s: float,
    control: int = -1,
    quiet_s: float = 1.0,
    turns: SendingTurns | None = None,
) -> bool: ...
