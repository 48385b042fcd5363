"""Checksums of index and holding rows. Bodies have separate checksums, in the index.

Each checksum covers the row's key, too: the content of another row is not mistaken for this row.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from zlib import crc32

from broker.store.message_index import SLOT_BYTES, slot_bytes_of

_KEY = Struct("<qq")
_SUM = Struct("<I")
_PLACE = 20
"""Offset of the checksum within an index, so that no body need be read to check an index."""


def seal_index(segment_id: int, message_index: bytes) -> bytes:
    end = _PLACE + _SUM.size
    return message_index[:_PLACE] + _SUM.pack(_index_sum(segment_id, message_index)) + message_index[end:]


def is_index(segment_id: int, message_index: bytes) -> bool:
    """Whether the index is as written for this segment. Older formats wrote no checksum."""
    if slot_bytes_of(message_index) != SLOT_BYTES or len(message_index) < SLOT_BYTES:
        return True
    (found,) = _SUM.unpack_from(message_index, _PLACE)
    return found in (0, _index_sum(segment_id, message_index))


def sealed_holdings(rows: Iterable[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes, int]]:
    return [(*row, holding_sum(*row)) for row in rows]


def holding_sum(queue_id: int, segment_id: int, counts: bytes) -> int:
    return crc32(counts, crc32(_KEY.pack(queue_id, segment_id)))


def is_holding(queue_id: int, segment_id: int, counts: bytes, checksum: int | None) -> bool:
    return checksum is None or checksum == holding_sum(queue_id, segment_id, counts)


def _index_sum(segment_id: int, message_index: bytes) -> int:
    """Never 0."""
    key = crc32(_KEY.pack(0, segment_id))
    return crc32(message_index[_PLACE + _SUM.size :], crc32(message_index[:_PLACE], key)) or 1
