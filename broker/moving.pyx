"""How does an operator have messages of one durable queue go to others of the same broker?

As dead letters do: `Stock` takes them out of the one and puts them into the other in one commit.
"""

from broker.action cimport Archive
from broker.message cimport Entry
from broker.held_queue cimport HeldQueue
from broker.stock cimport Stock

from broker.action import Departure
from broker.cause import Reason

cdef object _MOVED = Departure.MOVED


def move(Stock stock not None, HeldQueue source not None, choose, long limit, long long before, double now,
         bint is_back=False, bint are_packed=True):
    """Have up to ``limit`` that wait in one durable queue, and came before position ``before``, go to others; how many.

    ``choose`` is called with each Entry: another durable queue, or None to leave it. What that queue has already, by way
    of another subscription, is left too. What made a message a dead letter goes with it, unless it ``is_back``.
    Without ``are_packed`` only what another queue had is looked at.
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

    for action in source.queue.take_available(limit, before, _MOVED, now, wants, are_packed):
        if type(action) is Archive and (<Archive>action).departure is _MOVED:
            entry = (<Archive>action).entry
            if source.record_level:
                stock.records.left(source, entry.message, _MOVED, False, now)
            stock.move(source, entry, targets[entry], _cause_of(stock, source, entry, is_back))
        else:
            rest.append(action)
    stock.carry_out(source, rest)
    return len(targets)


cdef object _cause_of(Stock stock, HeldQueue source, Entry entry, bint is_back):
    if not is_back and entry.cause is not None and entry.cause.reason is not Reason.MOVED:
        return entry.cause
    return stock.cause_of(source, entry, Reason.MOVED)
