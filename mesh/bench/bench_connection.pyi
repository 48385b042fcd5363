import math

FRAME_BYTES: int

class BenchLink:
    channel: int
    what: str
    is_done: bool
    started_at: float
    ended_at: float
    def __init__(
        self, channel: int, what: str, remote_window: int, next_incoming_id: int, delivery_count: int = 0
    ) -> None: ...

class BenchConnection:
    socket: int
    peer_frame_bytes: int
    moved_at: float
    def __init__(self, socket: int, peer_frame_bytes: int, beat_s: float, unsent_bound_bytes: int = 0) -> None: ...
    def add(self, link: BenchLink, peer_channel: int) -> None: ...
    def feed(self, leftover: bytes) -> None: ...

def run(
    carriers: list[BenchConnection],
    stall_s: float,
    control: int = -1,
    quiet_s: float = 1.0,
    limit_s: float = math.inf,
) -> bool: ...
