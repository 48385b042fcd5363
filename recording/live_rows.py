"""Live rows: state records of all that a node has, which the node writes to its ring when a reader asks for them.

A reader that comes late to a ring never sees the records of what began before. Upon a request, the node lists its
present connections, links, neighbors, paths and queues as records with event `live`, a few in each turn, and then
writes a record of the node itself with event `listed`. Sans-IO: the node gives the turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from recording.columns import RecordEvent, RecordKind
from recording.pending_records import Row
from recording.state_records import StateRecorder, row_of

RowMaker = Callable[[], Row | None]
"""Makes the live row of one thing as the thing is now; returns None if the thing is gone."""

ROWS_AT_ONCE: Final = 16
"""The most rows written in one turn, which takes less than 1 ms."""
TURN_S: Final = 0.001
"""The time between two turns; the node serves its other inputs in between."""
WAIT_S: Final = 0.1
"""The time until the next turn if the ring has little room, or records are pending."""


class LiveRows:
    """Writes lists of live rows, one list at a time.

    ``things()`` yields a maker for the row of each thing of the node, connections before their links, each only once
    its turn has come. ``want_turn(delay_s)`` is called when `take_turn` is to be called after this delay, in seconds.
    Always: while a list is being written, exactly one turn is wanted.
    """

    def __init__(
        self,
        teller: StateRecorder,
        things: Callable[[], Iterator[RowMaker]],
        want_turn: Callable[[float], None],
    ) -> None:
        self._teller = teller
        self._things = things
        self._want_turn = want_turn
        self._left: Iterator[RowMaker] | None = None
        self._next: RowMaker | None = None
        """The maker of a row that found no room. The row itself is made again, as the thing may have changed."""
        self._first_slot = 0
        self._count = 0

    def request(self) -> int:
        """Begin a list, or share the list that is being written for an earlier request.

        Return the number of the slot, counted from the start of the ring, from which on the rows of the list follow.
        Raises ValueError if the node has no ring.
        """
        if not self._teller.is_on:
            raise ValueError("this node has no ring to list its connections, links and queues in: `link_logs` is off")
        if self._left is None:
            self._left = chain(self._things(), (self._listed,))
            self._first_slot, self._count = self._teller.written, 0
            self._want_turn(0.0)
        return self._first_slot

    def take_turn(self) -> None:
        """Write the next rows of the list, ROWS_AT_ONCE at most, and behind the last that the list is complete.

        Do nothing if no list is being written.
        """
        if self._left is None:
            return
        try:
            delay_s = self._write_some(self._left)
        except Exception:
            # A list with a gap would be worse than none: its reader sees no end of this list, and asks again.
            self._left = self._next = None
            raise
        if delay_s is None:
            self._left = None
        else:
            self._want_turn(delay_s)

    def _write_some(self, left: Iterator[RowMaker]) -> float | None:
        """Write the next rows; return after which time to go on, in seconds, or None at the end of the list."""
        for _ in range(ROWS_AT_ONCE):
            make = self._next or next(left, None)
            if make is None:
                return None
            row = make()
            if row is not None and not self._teller.tell_live(row):
                self._next = make
                return WAIT_S
            self._next = None
            self._count += row is not None
        return TURN_S

    def _listed(self) -> Row:
        return row_of(RecordKind.NODE, RecordEvent.LISTED, count=self._count)
