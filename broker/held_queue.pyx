"""A queue or subscription as a broker has it: its name, its policy, who is attached to it, and what room it has."""

from libc.math cimport INFINITY

from broker.queue cimport Queue
from wire.records cimport recorder

from dataclasses import dataclass

from addressing.queue_policy import NO_POLICY
from broker.queue import QueueSnapshot
from wire.records import level_of

cdef enum:
    # Of a message before any was seen.
    USUAL_BYTES = 1024

cdef long long UNLIMITED = 1LL << 40


@dataclass(frozen=True, slots=True)
class QueueSummary:
    address: str
    is_subscription: bool
    is_durable: bool
    subscriber: str | None
    queue: QueueSnapshot
    waiting_count: int
    """Producers without credit, for want of room in it."""
    waiting_s: float
    """The longest of them."""


cdef unsigned int _numbers = 0


cdef unsigned int _next_number():
    global _numbers
    _numbers += 1
    return _numbers


cdef class Taker(DeliveryOwner):
    cdef int take(self, Entry entry) except -1:
        raise NotImplementedError

    cdef int pump(self, double now) except -1:
        raise NotImplementedError


cdef class Producer(DeliveryOwner):
    def __cinit__(self):
        self.waiting_since_s = INFINITY

    cdef int on_room_in_queue(self) except -1:
        raise NotImplementedError


cdef class HeldQueue:
    """A queue with its name, its policy and those attached to it.

    ``row`` is what the store knows of it; None for one that lives in memory only.
    ``is_probe``: in memory too, but its messages are written, without an entry: the next start forgets them.
    ``owner`` is the user who made it, None where that is not known, or was a node or an operator.
    ``key`` is set for a subscription that is found again, or shared; ``address`` is then the filter.
    ``taker_count``: links that take from it, or will once it is on disk. Kept by who attaches them.

    Always: ``moved`` has the ids of the messages that were taken from another queue, and that the store has here, or
    will have when the open batch is on disk, or had before
    Always: ``promised`` is the credit that its producers have
    """

    def __init__(self, address, queue, row=None, key=None, is_subscription=False, is_probe=False, policy=NO_POLICY,
                 owner=None):
        self.policy, self.moved, self.held_back = policy, set(), {}
        self.is_limited, self.max_messages, self.max_bytes = policy.is_limited, policy.max_messages, policy.max_bytes
        self.address, self.queue = address, queue
        self.row, self.key = row, key
        self.owner = owner if row is None else row.owner
        self.queue_id = None if row is None else row.queue_id
        self.is_subscription, self.is_probe = is_subscription, is_probe
        self.consumers = {}
        self.due_s = INFINITY
        self.number = _next_number()
        self.record_level = recorder.level if policy.link_log is None else level_of(policy.link_log)
        recorder.note(self, True, None)

    def add_consumer(self, Taker taker not None):
        self.consumers[taker.consumer_id] = taker

    def drop_consumer(self, Taker taker not None):
        del self.consumers[taker.consumer_id]

    @property
    def subscriber(self):
        """Whose subscription it is, as people write it; None for what is none, or ends with its link."""
        return None if self.key is None else self.key.text

    @property
    def is_durable(self):
        return self.row is not None

    @property
    def is_written(self):
        """Its messages wait for the disk."""
        return self.is_written_now()

    cdef bint is_written_now(self) noexcept:
        return self.row is not None or self.is_probe

    cdef bint is_over_limit(self) noexcept:
        if self.max_messages and self.queue.limited_count() > self.max_messages:
            return True
        return self.max_bytes and self.queue.limited_bytes() > self.max_bytes

    cdef bint has_room_for(self, size_t size_bytes) noexcept:
        if self.max_messages and self.queue.limited_count() + self.arriving_count >= self.max_messages:
            return False
        if not self.max_bytes:
            return True
        return self.queue.limited_bytes() + self.arriving_bytes + <long long>size_bytes <= self.max_bytes

    cdef long long room(self) noexcept:
        """For how many messages more there is room, those included that producers have credit for.

        Sizes are not known before: all are taken for as large as the largest that was seen.
        """
        cdef long long room = UNLIMITED, free_bytes
        if self.max_messages:
            room = self.max_messages - self.queue.limited_count() - self.arriving_count
        if self.max_bytes:
            free_bytes = self.max_bytes - self.queue.limited_bytes() - self.arriving_bytes
            # What is left of the room is for one more, however large: else the last bytes would stop all.
            room = min(room, max(free_bytes // max(self.largest_bytes, <long long>USUAL_BYTES), free_bytes > 0))
        return room

    @property
    def free_count(self):
        """For how many messages more its limit has room."""
        if not self.max_messages:
            return UNLIMITED
        return max(0, self.max_messages - self.queue.limited_count() - self.arriving_count)

    @property
    def free_bytes(self):
        """For how many bytes more its limit has room."""
        if not self.max_bytes:
            return UNLIMITED
        return max(0, self.max_bytes - self.queue.limited_bytes() - self.arriving_bytes)

    cdef int note_change(self) except -1:
        """How much is in it changes."""
        if not self.is_restless:
            self.is_restless = True
            recorder.note_restless(self)
        return 0

    def rest(self):
        """What changed in it was told."""
        self.is_restless = False

    cdef void count_in(self, Message message) noexcept:
        if self.row is None and not message.is_stored and not message.is_large:
            self.passing_bytes += message.size_bytes

    cdef void count_out(self, Message message) noexcept:
        if self.row is None and not message.is_stored and not message.is_large:
            self.passing_bytes -= message.size_bytes

    def summary(self, double now):
        cdef Producer producer
        waits = [now - producer.waiting_since_s for producer in self.held_back if producer.waiting_since_s <= now]
        return QueueSummary(
            self.address,
            self.is_subscription,
            self.is_durable,
            self.subscriber,
            self.queue.snapshot(),
            len(waits),
            max(waits, default=0.0),
        )

    @property
    def coming_count(self):
        """Messages that are not in the queue yet, and will be when the disk has them."""
        return self.arriving_count

    @property
    def is_temporary(self):
        """A queue made by whoever used it first."""
        return self.row is None and not self.is_subscription

    @property
    def is_forsaken(self):
        """A subscription without links, or a temporary queue that nobody uses and that holds nothing."""
        if self.is_durable or self.queue.is_used or self.producer_count:
            return False
        return self.is_subscription or self.queue.is_empty
