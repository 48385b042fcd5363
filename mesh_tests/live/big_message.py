"""A message too big to be held: made, sent and checked piece by piece, over a blocking socket."""

from __future__ import annotations

import hashlib
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mesh_tests.live.wire_client import WireClient
from wire import delivery as deliveries
from wire.delivery import ACCEPTED
from wire.link import IncomingLink, OutgoingLink

CHUNK_BYTES = 65536
_SEED = 7
_DATA_SECTION = b"\x00\x53\x75\xb0"


def pieces(body_bytes: int) -> Iterator[bytes]:
    """An AMQP message with one data section. [3.2.6] Random, so that nothing on the way gains by its repetition."""
    yield _DATA_SECTION + struct.pack(">I", body_bytes)
    # A few random blocks in random order: as good as random bytes, and made in no time.
    source = random.Random(_SEED)
    blocks = [source.randbytes(CHUNK_BYTES) for _ in range(16)]
    left = body_bytes
    while left:
        block = source.choice(blocks)[:left]
        left -= len(block)
        yield block


@dataclass
class Digest:
    """Of a message that goes by."""

    bytes_seen: int = 0
    _hash: Any = field(default_factory=hashlib.blake2b)

    def add(self, piece: bytes) -> None:
        self.bytes_seen += len(piece)
        self._hash.update(piece)

    def value(self) -> str:
        return str(self._hash.hexdigest())


def digest_of(body_bytes: int) -> Digest:
    digest = Digest()
    for piece in pieces(body_bytes):
        digest.add(piece)
    return digest


class BigReceiver(WireClient):
    """Takes one message, keeps only its digest, and accepts it."""

    def __init__(self, port: int, address: str) -> None:
        super().__init__(port, container_id="big-receiver", idle_timeout_s=0)
        self.digest = Digest()
        self.is_complete = False
        self.receiver(address, credit=1)

    def on_delivery(self, link: IncomingLink, delivery: Any) -> None:
        while size := deliveries.pending(delivery):
            self.digest.add(link.recv(min(size, CHUNK_BYTES)))
        assert not deliveries.is_aborted(delivery)
        if not deliveries.is_partial(delivery):
            deliveries.set_outcome(delivery, ACCEPTED)
            link.advance()
            deliveries.settle(delivery)
            self.is_complete = True


class BigSender(WireClient):
    """Sends one message as the peer's windows allow."""

    def __init__(self, port: int, address: str) -> None:
        super().__init__(port, container_id="big-sender", idle_timeout_s=0)
        self.link: OutgoingLink = self.sender(address)

    def send_big(self, body_bytes: int) -> int:
        """A number for ``outcomes``."""
        link = self.link
        self.wait(lambda: link.credit > 0, "credit")
        number = self.begin_delivery(link)
        for piece in pieces(body_bytes):
            self.wait(lambda: link.is_writable, "a session window", timeout_s=60.0)
            link.send(piece)
            self.step()
        link.finish()
        return number
