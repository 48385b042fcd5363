"""Settlement for producers that asked for rcv-settle-mode second: the broker settles after the producer. [2.8.3]

The broker gives its outcome, and settles once the producer has settled. Some clients (Azure's for Python) ask for the
mode, but wait for the broker to settle: if a producer has not settled for ``PATIENCE_S``, the broker settles, and from
then on settles with each outcome on the same link.
"""

PATIENCE_S = 1.0
cdef double _PATIENCE_S = PATIENCE_S


cdef class SecondSettlements:
    """The links of a broker with deliveries that have an outcome, and that their producers have not settled yet.

    Always: ``waiting`` has exactly these links
    """

    def __init__(self):
        self.waiting = {}

    cdef int begin(self, SecondSettlement last_word) except -1:
        self.waiting[last_word] = None
        return 0

    cdef int forget(self, SecondSettlement last_word) except -1:
        self.waiting.pop(last_word, None)
        return 0

    def next_deadline(self):
        """Return the time of the next call of ``on_time``; None while the broker waits for no producer to settle."""
        if not self.waiting:
            return None
        return min([(<SecondSettlement>each).oldest_s() for each in self.waiting]) + _PATIENCE_S

    def on_time(self, double now):
        cdef SecondSettlement last_word
        for last_word in list(self.waiting):
            if last_word.oldest_s() + _PATIENCE_S <= now:
                last_word.give_up()


cdef class SecondSettlement:
    """The deliveries of one producer's link that have an outcome, and that the producer has not settled yet.

    ``settle(deliveries)`` is called to settle deliveries whose producer stayed silent.
    """

    def __init__(self, SecondSettlements all_ not None, settle):
        self.all, self.settle = all_, settle
        self.given = {}

    cdef bint waits_for(self, size_t delivery, double now) except? True:
        """Note that the broker gave its outcome for a delivery; return whether to wait for the producer to settle.

        False once the producer stayed silent: then the broker settles at once.
        """
        if self.is_ours:
            return False
        if not self.given:
            self.all.begin(self)
        self.given[delivery] = now
        return True

    cdef bint is_given(self, size_t delivery) except? True:
        """Note that the producer settled a delivery; return whether the broker was waiting for this."""
        if self.given.pop(delivery, None) is None:
            return False
        if not self.given:
            self.all.forget(self)
        return True

    cdef int end(self) except -1:
        """Forget the deliveries of a link that is gone."""
        self.given.clear()
        return self.all.forget(self)

    def oldest_s(self):
        return next(iter(self.given.values()))

    def give_up(self):
        """Settle all deliveries of a producer that stayed silent, and wait for it no more on this link."""
        self.is_ours = True
        deliveries, self.given = self.given, {}
        self.all.forget(self)
        self.settle(list(deliveries))
