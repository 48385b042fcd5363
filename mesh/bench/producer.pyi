import math
from array import array

from mesh.bench.bench_connection import BenchLink

MIN_BODY_BYTES: int

class BenchProducer(BenchLink):
    count: int
    sent: int
    settled: int
    settled_twice: int
    def __init__(
        self,
        channel: int,
        what: str,
        remote_window: int,
        *,
        run: int,
        count: int,
        body_bytes: int,
        frame_bytes: int,
        is_presettled: bool = False,
        is_durable: bool = False,
        bytes_per_s: float = math.inf,
    ) -> None: ...
    @property
    def outcomes_counted(self) -> dict[str, int]: ...

class BoundedProducer(BenchProducer):
    def __init__(
        self,
        channel: int,
        what: str,
        remote_window: int,
        *,
        in_flight: int,
        run: int,
        count: int,
        body_bytes: int,
        frame_bytes: int,
        is_presettled: bool = False,
        is_durable: bool = False,
    ) -> None: ...
    @property
    def waits_s(self) -> array[float]: ...

class PacedProducer(BenchProducer):
    is_ended: bool
    def __init__(
        self,
        channel: int,
        what: str,
        remote_window: int,
        *,
        rate_per_s: float,
        seconds: float,
        most_seconds: float,
        companions: list[BenchLink],
        run: int,
        body_bytes: int,
        frame_bytes: int,
        is_presettled: bool = False,
        is_durable: bool = False,
    ) -> None: ...
