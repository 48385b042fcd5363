"""Moves of messages from a durable queue or subscription to durable queues of the same broker, for an operator.

`MessageStore` moves each message between the queues in one commit, as it moves a dead letter.
"""

from broker.queueing.action cimport Archive
from broker.queueing.message cimport QueueEntry
from broker.queueing.held_queue cimport HeldQueue
from broker.queueing.message_store cimport MessageStore
from broker.queueing.queue cimport Cursor

from broker.queueing.action import Departure
from broker.store.cause import Reason

cdef object _MOVED = Departure.MOVED


def move(
    MessageStore message_store not None, HeldQueue source not None, choose, long limit, long long before, double now,
    bint is_back=False, bint are_packed=True, Cursor cursor=None
):  # fmt: skip
    """Move up to ``limit`` waiting messages of queue ``source``, with positions below ``before``; return how many.

    ``choose`` gets each QueueEntry and returns the durable queue for its message, or None to leave the message. A
    message that was moved to that queue before, from another subscription, stays too. A dead letter keeps its cause
    (reason and origin), unless the move ``is_back``, to the queue of origin. Without ``are_packed`` packed messages are
    skipped: no packed message was moved to ``source`` from another queue. ``cursor`` is as for the queue's
    `take_available`.
    """
    cdef dict targets = {}
    wants = _choice(choose, targets)
    actions = source.queue.take_available(limit, before, _MOVED, now, wants, are_packed, cursor)
    return len(_carry_out(message_store, source, actions, targets, is_back, now))


def move_at(MessageStore message_store not None, HeldQueue source not None, choose, list positions, double now, bint is_back=False):
    """Move the waiting messages at ``positions``, which rise, as `move` does; return the positions of those moved."""
    cdef dict targets = {}
    actions = source.queue.take_at(positions, _MOVED, now, _choice(choose, targets))
    return _carry_out(message_store, source, actions, targets, is_back, now)


def _choice(choose, dict targets):
    """Return a function that says whether an entry moves, and that puts the entry's target into ``targets`` if so."""

    def wants(QueueEntry entry):
        cdef HeldQueue target = choose(entry)
        if target is None or entry.message.message_id in target.moved:
            return False
        targets[entry] = target
        return True

    return wants


cdef list _carry_out(
    MessageStore message_store, HeldQueue source, list actions, dict targets, bint is_back, double now
):  # fmt: skip
    """Carry out the actions of a queue whose entries move to ``targets``; return the positions of those entries."""
    cdef list rest = [], moved = []
    cdef QueueEntry entry
    for action in actions:
        if type(action) is Archive and (<Archive>action).departure is _MOVED:
            entry = (<Archive>action).entry
            if source.record_level:
                message_store.records.left(source, entry.message, _MOVED, False, now)
            message_store.move(source, entry, targets[entry], _cause_of(message_store, source, entry, is_back))
            moved.append(entry.position)
        else:
            rest.append(action)
    message_store.carry_out(source, rest)
    return moved


cdef object _cause_of(MessageStore message_store, HeldQueue source, QueueEntry entry, bint is_back):
    if not is_back and entry.cause is not None and entry.cause.reason is not Reason.MOVED:
        return entry.cause
    return message_store.cause_of(source, entry, Reason.MOVED)
