"""Settlement for producers that asked for rcv-settle-mode second: the broker settles after the producer. [2.8.3]

The broker gives its outcome, and settles once the producer has settled. Some clients ask for the mode and then wait for
the receiver to settle (Azure's for Python): if a producer has not settled for ``PATIENCE_S``, the broker settles, and
from then on settles with each outcome on the same link.
"""

PATIENCE_S = 1.0
cdef double _PATIENCE_S = PATIENCE_S


cdef class SecondSettlements:
    """Always: ``waiting`` has the links with outcomes not settled by their producers yet."""

    def __init__(self):
        self.waiting = {}

    cdef int begin(self, SecondSettlement last_word) except -1:
        self.waiting[last_word] = None
        return 0

    cdef int forget(self, SecondSettlement last_word) except -1:
        self.waiting.pop(last_word, None)
        return 0

    def next_deadline(self):
        """When to call ``on_time``; None while no producer is waited for."""
        if not self.waiting:
            return None
        return min([(<SecondSettlement>each).oldest_s() for each in self.waiting]) + _PATIENCE_S

    def on_time(self, double now):
        cdef SecondSettlement last_word
        for last_word in list(self.waiting):
            if last_word.oldest_s() + _PATIENCE_S <= now:
                last_word.give_up()


cdef class SecondSettlement:
    """The unsettled outcomes of one link. ``settle(deliveries)`` settles on behalf of a silent producer."""

    def __init__(self, SecondSettlements all_ not None, settle):
        self.all, self.settle = all_, settle
        self.given = {}

    cdef bint waits_for(self, size_t delivery, double now) except? True:
        """Note that the outcome is given. False: the broker is to settle at once."""
        if self.is_ours:
            return False
        if not self.given:
            self.all.begin(self)
        self.given[delivery] = now
        return True

    cdef bint is_given(self, size_t delivery) except? True:
        """Note that the producer settled this delivery; whether there was an outcome."""
        if self.given.pop(delivery, None) is None:
            return False
        if not self.given:
            self.all.forget(self)
        return True

    cdef int end(self) except -1:
        """The link is gone, with its deliveries."""
        self.given.clear()
        return self.all.forget(self)

    def oldest_s(self):
        return next(iter(self.given.values()))

    def give_up(self):
        """Settle for the producer, now and from now on."""
        self.is_ours = True
        deliveries, self.given = self.given, {}
        self.all.forget(self)
        self.settle(list(deliveries))
