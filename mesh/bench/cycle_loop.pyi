class CycleFrames:
    def __init__(self, sasl_init: bytes, hello: bytes, payload: bytes, close: bytes) -> None: ...

class Cycle:
    done: int
    accepted: int

def run_cycles(
    host: str, port: int, frames: list[CycleFrames], count: int, stall_s: float
) -> tuple[list[Cycle], float, float]: ...
