"""Of which inlets must all that is outstanding at takers come back before anything of theirs goes another way?

The last taker of an address left, and what it did not get may lie at several routers of the path. Each gives it back in
its own time; what is offered again before the rest is here would be behind it when a new taker comes. So it is recalled
(`router.forwarding.recall`) and waited for. Not for ever: the new taker may have got it, and settle in batches.
"""

from router.forwarding.ends cimport Carrier, Inlet
from router.forwarding.move cimport Move
from router.forwarding.recall cimport ask_back


cdef class Homing:
    """``on_end()`` follows when inlets may go on by themselves, after ``patience_s``."""

    def __init__(self, timers, double patience_s, on_end):
        self.timers = timers
        self.patience_s = patience_s
        self.on_end = on_end
        self.inlets = {}

    cdef bint has(self, Inlet inlet) except -1:
        return inlet in self.inlets

    cdef int call(self, Inlet inlet) except -1:
        """Have back what circuits have of it."""
        cdef Carrier carrier = inlet.newest
        while carrier is not None:
            if carrier.taker is not None and carrier.taker.cost and isinstance(carrier, Move):
                self.inlets[inlet] = None
                if (<Move>carrier).may_be_recalled():
                    ask_back(<Move>carrier)
            carrier = carrier.older_in
        if inlet in self.inlets:
            self._stop_timer()
            self.timer = self.timers.after(self.patience_s, self._on_late)
        return 0

    cdef int _stop_timer(self) except -1:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        return 0

    cdef bint look(self) except -1:
        """Some may be home: True when one is."""
        cdef int before = len(self.inlets)
        for inlet in list(self.inlets):
            if _is_home(inlet):
                self.forget(inlet)
        return len(self.inlets) < before

    cdef int forget(self, Inlet inlet) except -1:
        self.inlets.pop(inlet, None)
        if not self.inlets:
            self._stop_timer()
        return 0

    def _on_late(self):
        self.timer = None
        self.inlets.clear()
        self.on_end()


cdef bint _is_home(Inlet inlet) noexcept:
    """No taker has anything of it."""
    cdef Carrier carrier = inlet.newest
    while carrier is not None:
        if carrier.taker is not None:
            return False
        carrier = carrier.older_in
    return True
