"""How does a message go from one durable queue to another of the same broker, and its body stays where it is?

One commit takes it out of the one and puts it into the other: after a crash it is in exactly one of them. In memory it
enters the other when that is on disk, so that nobody is given what a crash would show as never seen.
"""

from broker.commit cimport Commits, Promise
from broker.message cimport Entry, Message
from broker.stock cimport HeldQueue, Stock

from broker.action import Departure

cdef object _MOVED = Departure.MOVED


cdef class _Step(Promise):
    """Messages that go to other queues together: (target, message), in order."""

    cdef Stock stock
    cdef list arrivals
    cdef object choose
    # Of each target: what it has already, or what the open batch takes out of it. A batch knows a message once per queue.
    cdef dict taken, shared

    def __cinit__(self, Stock stock, choose):
        self.stock, self.choose = stock, choose
        self.arrivals = []
        self.taken, self.shared = {}, {}

    cdef bint wants(self, Entry entry) except -1:
        cdef HeldQueue target = self.choose(entry)
        if target is None or self.has(target, entry.message):
            return False
        self.arrivals.append((target, entry.message))
        return True

    cdef bint has(self, HeldQueue target, Message message) except -1:
        if target.moving_ids is not None and message.message_id in target.moving_ids:
            return True
        if target not in self.taken:
            self.taken[target] = set(self.stock.commits.write.archived.get(target.queue_id, ()))
        if message.message_id in self.taken[target]:
            return True
        if message.references < 2:
            return False
        if target not in self.shared:
            self.shared[target] = target.queue.shared_ids()
        return message.message_id in self.shared[target]

    cdef int write(self) except -1:
        cdef HeldQueue target
        cdef Message message
        for target, message in self.arrivals:
            message.references += 1
            target.coming_count += 1
            if target.moving_ids is None:
                target.moving_ids = set()
            target.moving_ids.add(message.message_id)
            self.stock.commits.write.entries.append((target.queue_id, message.message_id, 0))
        return 0

    cdef int keep(self, double now) except -1:
        cdef HeldQueue target
        cdef Message message
        for target, message in self.arrivals:
            target.coming_count -= 1
            target.moving_ids.discard(message.message_id)
            if target.is_deleted:
                self.stock.release(message)
            else:
                self.stock._enqueue(target, message, now)
        return 0


def move(Stock stock not None, HeldQueue source not None, choose, long limit, long long before, double now):
    """Have up to ``limit`` that wait in one durable queue, and came before position ``before``, go to others; how many.

    ``choose`` is called with each Entry: another durable queue, or None to leave it. What that queue has already, by way
    of another subscription, is left too.
    """
    cdef _Step step = _Step(stock, choose)
    cdef list actions = source.queue.take_available(limit, before, _MOVED, now, lambda entry: step.wants(entry))
    step.write()
    stock.carry_out(source, actions)
    stock.commits.promise_kept_by(step)
    return len(step.arrivals)
