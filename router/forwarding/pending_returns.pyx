"""Recall an inlet's deliveries from circuits, and wait until all have come back before any goes to another taker.

To recall a delivery is to ask the router that has it to give it back (`router.forwarding.recall`).

This is done for an address with a fallback queue, when its last taker has left: deliveries that the taker did not get
may be at several routers of the path. Each router gives its part back in its own time, so a delivery offered again at
once could overtake older deliveries. The wait is limited: a new taker may have got the deliveries meanwhile, and settle
late.
"""

from router.forwarding.ends cimport Carrier, Inlet
from router.forwarding.move cimport Move
from router.forwarding.recall cimport ask_back


cdef class PendingReturns:
    """The inlets of one group that wait for the return of their recalled deliveries.

    ``patience_s`` after the last recall the inlets go on without the missing deliveries, and ``on_end()`` is called.
    """

    def __init__(self, timers, double patience_s, on_end):
        self.timers = timers
        self.patience_s = patience_s
        self.on_end = on_end
        self.inlets = {}

    cdef bint has(self, Inlet inlet) except -1:
        return inlet in self.inlets

    cdef int call(self, Inlet inlet) except -1:
        """Recall all deliveries of ``inlet`` that circuits have; if there are any, ``inlet`` waits for their return."""
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
        """Let the inlets whose deliveries have all come back wait no longer; return True if there was one."""
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
    """True if no taker has an unsettled delivery of the inlet, so that all recalled ones are back."""
    cdef Carrier carrier = inlet.newest
    while carrier is not None:
        if carrier.taker is not None:
            return False
        carrier = carrier.older_in
    return True
