"""Bodies that are made or read in pieces."""

import os
import threading
from pathlib import Path
from typing import IO

import pytest

from mesh.messages.large_body import PIECE_BYTES, WHOLE_BYTES, FileBody, Filler, filler, read_body
from mesh.terminal.failure import CommandFailed

LARGE = os.urandom(WHOLE_BYTES + 7)


def test_a_small_body_is_bytes_and_a_large_one_is_never_whole() -> None:
    assert filler(5) == b"xxxxx"
    large = filler(3 << 30)
    assert isinstance(large, Filler)
    assert max(len(piece) for piece, _ in zip(large.pieces(), range(3), strict=False)) <= PIECE_BYTES


def test_a_filler_has_the_size_it_was_asked_for_each_time() -> None:
    body = Filler(3 * PIECE_BYTES + 1)
    assert [len(b"".join(body.pieces())) for _ in range(2)] == [body.size_bytes] * 2


def test_more_than_a_message_can_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="less than 4 GiB"):
        filler(1 << 32)
    with (tmp_path / "sparse").open("w+b") as file:
        file.truncate(1 << 32)
        with pytest.raises(ValueError, match="expected a message body of less than 4 GiB, got 4294967296 bytes"):
            read_body(file)


@pytest.mark.parametrize(
    "content", [b"", b"small", LARGE[:WHOLE_BYTES], LARGE], ids=["none", "small", "just whole", "large"]
)
def test_a_file_is_sent_as_it_is(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with (tmp_path / "file").open("rb") as file:
        body = read_body(file)
        assert isinstance(body, FileBody) == (len(content) > WHOLE_BYTES)
        assert joined(body) == joined(body) == content


@pytest.mark.parametrize("content", [b"small", LARGE], ids=["small", "large"])
def test_a_pipe_is_read_to_its_end_and_may_be_sent_again(content: bytes) -> None:
    reading, writing = (os.fdopen(end, mode) for end, mode in zip(os.pipe(), ("rb", "wb"), strict=True))
    writer = threading.Thread(target=write_all, args=(writing, content))
    writer.start()
    with reading:
        body = read_body(reading)
        assert joined(body) == joined(body) == content
    writer.join()
    if isinstance(body, FileBody):
        body.file.close()


def test_a_file_that_becomes_shorter_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(LARGE)
    with (tmp_path / "file").open("rb") as file:
        body = read_body(file)
        os.truncate(tmp_path / "file", PIECE_BYTES)
        with pytest.raises(CommandFailed, match=f"became {len(LARGE) - PIECE_BYTES} bytes shorter"):
            joined(body)


def joined(body: object) -> bytes:
    return body if isinstance(body, bytes) else b"".join(body.pieces())  # type: ignore[attr-defined]


def write_all(writing: IO[bytes], content: bytes) -> None:
    with writing:
        writing.write(content)
