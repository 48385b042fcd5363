"""Layout of the ring, a file in memory that hands a node's records to the writer and outlives the node: header, slots.

    offset  0  "AMQring1"                      of a header of 4,096 bytes; all numbers little-endian, 8 bytes each
            8  capacity: slots
           16  when the node started, us of UTC
           64  written: slots, ever            by the node; after the slots themselves
          128  taken: slots, ever              by the writer
          192  dropped: records, ever          by the node, for want of room
          256  clock: us by which UTC is ahead of the monotonic clock; by the node, each second
          320  beat: the monotonic clock, us, when the node last wrote its clock
          384  1 if nobody takes records out of the ring: the node overwrites the oldest records; else 0
          512  JSON: "node" (its name), "mesh", "role", "version", "topology"; padded with zeros

A slot of 32 bytes is a record of a delivery, of traffic, or of a message in a queue. A record with text is a JSON
object of the row's columns, in as many slots as the text takes, after a slot with the length of the text. Slot ``n``,
counted from the start of the ring, lies in slot ``n % capacity``. The node that writes a ring holds a lock on the file
(flock): a ring without a lock belongs to a node that is gone. A node makes the file under another name, locks the file,
fills in the header and renames the file to end with `.ring`.

Besides the writer, which takes records out, a ring may have readers that only read. Where the node overwrites the
oldest records, ``taken`` stays 0, and the node writes fewer than an eighth of the ring's slots before it counts them as
written. So a reader that has copied the slots from number ``n`` on reads ``written`` again: the copy is whole if
``written - n <= capacity - capacity // 8``. If not, the reader was too slow: records are lost to it, and it goes on
with slot ``written``, which begins a record, and asks the node for live rows. A reader of a ring from which records
are taken compares ``written - n`` with ``capacity``.

    start_us (8) | took_us (4) | size_bytes (4) | incoming (4) | outgoing (4)
        | count (4) | kind (1) | outcome (1) | part (1) | 0 (1)

``start_us`` is of the monotonic clock; ``took_us`` and ``size_bytes`` stop at 2^32 - 1. A delivery or message ended at
``start_us + took_us``; for traffic, ``start_us`` is the end of the second. For a message in a queue, ``incoming`` is
the number of the queue. For text, ``size_bytes`` is the length of the text and ``start_us`` the time of the event.
"""

from __future__ import annotations

from typing import Final

from recording.columns import DeliveryPart, RecordEvent, RecordKind, RecordOutcome

MAGIC: Final = b"AMQring1"
HEADER_BYTES: Final = 4096
SLOT_BYTES: Final = 32
SLOT: Final = "<QIIIIIBBBx"

CAPACITY_AT: Final = 8
RUN_AT: Final = 16
WRITTEN_AT: Final = 64
TAKEN_AT: Final = 128
DROPPED_AT: Final = 192
CLOCK_AT: Final = 256
BEAT_AT: Final = 320
OVERWRITES_AT: Final = 384
NODE_AT: Final = 512

LAST_SLOTS: Final = 4
"""Slots of a ring that stay free for the record of the node's own end, whose text takes 96 bytes at most."""

AHEAD_PART: Final = 8
"""Where the node overwrites the oldest records, it writes fewer slots than an eighth of the ring before it counts them.
"""

DELIVERY: Final = 1
TRAFFIC: Final = 2
TEXT: Final = 255

KINDS: Final = {
    DELIVERY: (RecordKind.DELIVERY, None),
    TRAFFIC: (RecordKind.TRAFFIC, None),
    3: (RecordKind.MESSAGE, RecordEvent.ENQUEUED),
    4: (RecordKind.MESSAGE, RecordEvent.DEQUEUED),
    5: (RecordKind.MESSAGE, RecordEvent.EXPIRED),
    6: (RecordKind.MESSAGE, RecordEvent.DEAD_LETTERED),
    7: (RecordKind.MESSAGE, RecordEvent.REMOVED),
}
"""Record kind and event by the code in byte ``kind`` of a slot, for slots that are complete records."""

OUTCOMES: Final = {
    0: RecordOutcome.NONE,
    1: RecordOutcome.ABORTED,
    2: RecordOutcome.SENDER_LOST,
    0x24: RecordOutcome.ACCEPTED,
    0x25: RecordOutcome.REJECTED,
    0x26: RecordOutcome.RELEASED,
    0x27: RecordOutcome.MODIFIED,
}
"""Outcome of a delivery by the code in a slot; codes from 0x24 on are AMQP's descriptors of delivery states. [3.4]"""

PARTS: Final = {0: DeliveryPart.WHOLE, 1: DeliveryPart.MANY, 2: DeliveryPart.COPY}


def capacity_of(size_bytes: int) -> int:
    """Return how many slots a ring of ``size_bytes``, header included, has room for."""
    return (size_bytes - HEADER_BYTES) // SLOT_BYTES
