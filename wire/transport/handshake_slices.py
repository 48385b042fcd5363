"""Time slices for handshakes: many connections that log in at once do not hold up those that are open.

A step of a handshake is the start of a connection that was accepted, or input of a connection whose peer the protocol
has not accepted yet. A step of TLS takes up to half a millisecond, and an event loop may find hundreds of them in one
turn. Steps run at once while the turn has time left; further steps wait, in order, for the next turns.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

SLICE_S = 0.002
"""Time in each turn of the event loop for steps of handshakes; one step is the least."""


class HandshakeSlices:
    """The steps of all handshakes of one event loop, for `SLICE_S` in each turn.

    Time is counted over several turns while it suffices for the steps of all of them, so that a handshake alone costs
    no call in the next turn.

    Always: steps run in the order of their calls of `run`; while a step waits, a call in the next turn is scheduled.
    """

    __slots__ = ("_now", "_used_s", "_waiting")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._used_s = 0.0
        self._waiting: deque[Callable[[], None]] = deque()

    def run(self, step: Callable[[], None]) -> bool:
        """Run ``step`` now or in a later turn; return False if the step waits for its turn.

        What a step raises in a later turn goes to the handler of the event loop, and the other steps go on.
        """
        if not self._waiting:
            if self._used_s < SLICE_S:
                began_at = self._now()
                step()
                self._used_s += self._now() - began_at
                return True
            asyncio.get_running_loop().call_soon(self._on_turn)
        self._waiting.append(step)
        return False

    def _on_turn(self) -> None:
        waiting, began_at = self._waiting, self._now()
        self._used_s = 0.0
        try:
            while waiting and self._used_s < SLICE_S:
                waiting.popleft()()
                self._used_s = self._now() - began_at
        finally:
            # Also after a step that raised, so that the others go on.
            if waiting:
                asyncio.get_running_loop().call_soon(self._on_turn)
