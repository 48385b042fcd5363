from mmap import mmap

HEADER_BYTES: int
FRAME_HEAD_BYTES: int

def read_header(log: bytes | mmap) -> tuple[bytes, int] | None: ...
def read_frames(log: bytes | mmap, salts: bytes, page_bytes: int) -> list[tuple[int, int, bool, bool]]: ...
