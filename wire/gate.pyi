from typing import final

from wire.errors import ConnectionFault

@final
class FrameGate:
    fault: ConnectionFault | None
    is_open_made_up: bool
    def __init__(self, transport: int, max_frame_bytes: int, channel_max: int) -> None: ...
    @property
    def is_in_frame(self) -> bool: ...
    def make_up_open(self) -> None: ...
