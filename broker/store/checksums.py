"""Checksums of the indexes of segments, and of holdings; message bodies have separate checksums, in the index.

Each checksum covers the key of its row, too, so that the content of another row does not pass for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from zlib import crc32

from broker.store.message_index import SLOT_BYTES, slot_bytes_of

_KEY = Struct("<qq")
_SUM = Struct("<I")
_PLACE = 20
"""The offset of the checksum within an index: stored in the index, so that a check need not read bodies."""


def seal_index(segment_id: int, message_index: bytes) -> bytes:
    """Return the index of a segment with the checksum of the index filled in."""
    end = _PLACE + _SUM.size
    return message_index[:_PLACE] + _SUM.pack(_index_sum(segment_id, message_index)) + message_index[end:]


def is_index(segment_id: int, message_index: bytes) -> bool:
    """Whether a segment's index matches its checksum; True for an index of older formats, without a checksum."""
    if slot_bytes_of(message_index) != SLOT_BYTES or len(message_index) < SLOT_BYTES:
        return True
    (found,) = _SUM.unpack_from(message_index, _PLACE)
    return found in (0, _index_sum(segment_id, message_index))


def sealed_holdings(rows: Iterable[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes, int]]:
    """Return the rows of holdings, (queue_id, segment_id, counts), each with its checksum added at the end."""
    return [(*row, holding_sum(*row)) for row in rows]


def holding_sum(queue_id: int, segment_id: int, counts: bytes) -> int:
    return crc32(counts, crc32(_KEY.pack(queue_id, segment_id)))


def is_holding(queue_id: int, segment_id: int, counts: bytes, checksum: int | None) -> bool:
    """Whether the counts of a holding match its checksum; True without a checksum, as in older formats."""
    return checksum is None or checksum == holding_sum(queue_id, segment_id, counts)


def _index_sum(segment_id: int, message_index: bytes) -> int:
    """Return the checksum of an index, without its own bytes; never 0, which stands for no checksum."""
    key = crc32(_KEY.pack(0, segment_id))
    return crc32(message_index[_PLACE + _SUM.size :], crc32(message_index[:_PLACE], key)) or 1
