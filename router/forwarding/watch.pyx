"""Timers of a multicast's takers: how long other takers wait for one, and whether that one got bytes meanwhile."""

from router.forwarding.ends cimport Taker
from router.forwarding.fan cimport FanCopy


cdef class TakerWatch:
    """The timer of one multicast taker for which other takers, or a barrier, wait.

    A watch ends once; then its callback leaves the taker out of deliveries, or begins another watch.
    """

    cdef bint has_moved(self) noexcept:
        """True if deliveries, or bytes of a delivery, went out to the taker since the watch began."""
        return self.taker.deliveries_out != self.deliveries_out or _bytes_under_way(self.taker) != self.sent_bytes


cdef size_t _bytes_under_way(Taker taker) noexcept:
    return (<FanCopy>taker.moving).sent_bytes if isinstance(taker.moving, FanCopy) else 0


cdef TakerWatch watch(TakerWatch now, Taker taker, object timers, double patience_s, object on_end):
    """Return the watch ``now`` of the taker if it ends within ``patience_s``, else cancel it and return a new watch.

    A new watch calls ``on_end(taker)`` after ``patience_s``. ``now`` is None if the taker has no watch.
    """
    cdef TakerWatch begun
    if now is not None:
        if now.timer.deadline <= timers.now + patience_s:
            return now
        now.timer.cancel()
    begun = TakerWatch.__new__(TakerWatch)
    begun.taker = taker
    begun.deliveries_out = taker.deliveries_out
    begun.sent_bytes = _bytes_under_way(taker)
    begun.timer = timers.after(patience_s, lambda: on_end(taker))
    return begun


cdef int end_watch(TakerWatch now) except -1:
    if now is not None:
        now.timer.cancel()
    return 0
