"""Does a producer that asked for rcv-settle-mode second settle after the outcome, or leave that to the broker? [2.8.3]

The broker gives its outcome, and settles once the producer has settled. Some clients ask for the mode and then wait for
the receiver to settle (Azure's for Python): where a producer has not settled for ``PATIENCE_S``, the broker settles, and
from then on settles with each outcome on that link.
"""

PATIENCE_S = 1.0
cdef double _PATIENCE_S = PATIENCE_S


cdef class LastWords:
    """Always: ``waiting`` has the links with outcomes that their producers have not settled yet."""

    def __init__(self):
        self.waiting = {}

    cdef int begin(self, LastWord last_word) except -1:
        self.waiting[last_word] = None
        return 0

    cdef int forget(self, LastWord last_word) except -1:
        self.waiting.pop(last_word, None)
        return 0

    def next_deadline(self):
        """When to call ``on_time``; None while nobody is waited for."""
        if not self.waiting:
            return None
        return min([(<LastWord>each).oldest_s() for each in self.waiting]) + _PATIENCE_S

    def on_time(self, double now):
        cdef LastWord last_word
        for last_word in list(self.waiting):
            if last_word.oldest_s() + _PATIENCE_S <= now:
                last_word.give_up()


cdef class LastWord:
    """Of one link. ``settle(deliveries)`` settles what its producer did not."""

    def __init__(self, LastWords all_ not None, settle):
        self.all, self.settle = all_, settle
        self.given = {}

    cdef bint waits_for(self, size_t delivery, double now) except? True:
        """The outcome is given. False: the broker is to settle at once."""
        if self.is_ours:
            return False
        if not self.given:
            self.all.begin(self)
        self.given[delivery] = now
        return True

    cdef bint is_given(self, size_t delivery) except? True:
        """The producer settled this delivery, which had an outcome."""
        if self.given.pop(delivery, None) is None:
            return False
        if not self.given:
            self.all.forget(self)
        return True

    cdef int end(self) except -1:
        """The link is gone, and its deliveries with it."""
        self.given.clear()
        return self.all.forget(self)

    def oldest_s(self):
        return next(iter(self.given.values()))

    def give_up(self):
        """The producer does not settle: the broker does, now and from now on."""
        self.is_ours = True
        deliveries, self.given = self.given, {}
        self.all.forget(self)
        self.settle(list(deliveries))
