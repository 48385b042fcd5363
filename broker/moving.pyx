"""How does an operator have messages of one durable queue go to others of the same broker?

As dead letters do: `Stock` takes them out of the one and puts them into the other in one commit.
"""

from broker.action cimport Archive
from broker.message cimport Entry
from broker.stock cimport HeldQueue, Stock

from broker.action import Departure
from broker.cause import Reason

cdef object _MOVED = Departure.MOVED


def move(Stock stock not None, HeldQueue source not None, choose, long limit, long long before, double now):
    """Have up to ``limit`` that wait in one durable queue, and came before position ``before``, go to others; how many.

    ``choose`` is called with each Entry: another durable queue, or None to leave it. What that queue has already, by way
    of another subscription, is left too.
    """
    cdef list rest = []
    cdef dict targets = {}
    cdef Entry entry

    def wants(Entry entry):
        cdef HeldQueue target = choose(entry)
        if target is None or entry.message.message_id in target.moved:
            return False
        targets[entry] = target
        return True

    for action in source.queue.take_available(limit, before, _MOVED, now, wants):
        if type(action) is Archive and (<Archive>action).departure is _MOVED:
            entry = (<Archive>action).entry
            stock.move(source, entry, targets[entry], stock.cause_of(source, entry, Reason.MOVED))
        else:
            rest.append(action)
    stock.carry_out(source, rest)
    return len(targets)
