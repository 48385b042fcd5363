"""A queue or subscription of a broker, with its name, policy, attached links and the room left for messages."""

from libc.math cimport INFINITY

from recording.records cimport Recorder

from dataclasses import dataclass

from addressing.pattern import is_pattern
from addressing.queue_policy import NO_POLICY
from broker.queueing.queue import QueueSnapshot

cdef enum:
    # Each message to come counts with this many bytes at least, as credit is granted to producers.
    USUAL_BYTES = 1024

cdef long long UNLIMITED = 1LL << 40


@dataclass(frozen=True, slots=True)
class QueueSummary:
    address: str
    is_subscription: bool
    is_durable: bool
    subscriber: str | None
    queue: QueueSnapshot
    # The number of producers that have no credit for want of room in the queue, and the longest of their waits so far.
    waiting_count: int
    waiting_s: float


cdef class QueueTaker(DeliveryOwner):
    cdef int take(self, QueueEntry entry) except -1:
        raise NotImplementedError

    cdef int pump(self, double now) except -1:
        raise NotImplementedError


cdef class QueueProducer(DeliveryOwner):
    def __cinit__(self):
        self.waiting_since_s = INFINITY

    cdef int on_room_in_queue(self) except -1:
        raise NotImplementedError


cdef class LateMessage:
    cdef bint enter(self) except -1:
        """Have the message written, to enter its queue; False if the broker takes no messages now."""
        raise NotImplementedError

    cdef int give_back(self) except -1:
        """Release the message to its sender: it was never stored."""
        raise NotImplementedError


cdef class HeldQueue:
    """A queue or subscription of a broker, with name, policy, consumers and producers.

    ``row`` is the queue's row in the store; None for a queue in memory.
    ``is_probe``: a queue in memory that shows that the disk works: messages are written to the store, but no entries,
    so that the next start forgets the messages.
    ``owner`` is the user who made the queue; None if unknown, or if a node or an operator made the queue.
    ``key`` is set for a subscription that can be found again, or shared; a subscription's ``address`` is its filter.
    ``filter_set`` narrows the subscription further; None for a subscription without a filter set, and for a queue.
    ``taker_count``: number of links that take from the queue, or will once the queue is on disk. `Attachments` counts.

    Always: ``moved`` has the ids of the messages moved to this queue from another whose cause (reason and origin of the
    move) is in the store, or in a batch on the way to the store
    Always: late messages enter the queue in order, and before messages of producers without credit
    Always: ``promised`` is the sum of the credit of the producers that this queue holds back when it is full
    """

    def __init__(self, address, queue, Recorder recorder not None, row=None, key=None, is_subscription=False,
                 is_probe=False, policy=NO_POLICY, owner=None, filter_set=None):
        self.policy, self.moved, self.held_back = policy, set(), {}
        self.blocks = policy.blocks
        self.is_limited, self.max_messages, self.max_bytes = policy.is_limited, policy.max_messages, policy.max_bytes
        self.address, self.queue = address, queue
        self.row, self.key = row, key
        self.owner = owner if row is None else row.owner
        self.queue_id = None if row is None else row.queue_id
        self.is_subscription, self.is_probe = is_subscription, is_probe
        self.filter_set = filter_set
        self.has_wildcards = is_subscription and is_pattern(address)
        self.consumers = {}
        self.due_s = self.use_due_s = INFINITY
        self.recorder = recorder
        self.number = recorder.next_number()
        self.record_level = recorder.level_of(policy.link_log)
        recorder.note(self, True, None)

    def add_consumer(self, QueueTaker taker not None):
        self.consumers[taker.consumer_id] = taker

    def drop_consumer(self, QueueTaker taker not None):
        del self.consumers[taker.consumer_id]

    @property
    def subscriber(self):
        """The subscriber's name as shown to people; None for a queue, or a subscription that ends with its link."""
        return None if self.key is None else self.key.text

    @property
    def is_durable(self):
        return self.row is not None

    @property
    def is_written(self):
        """Whether messages to this queue are accepted only once on disk: those to a durable or a probe's queue."""
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
        """Return how many more messages fit under the queue's limits, after those that wait for the disk.

        Credit that producers have is not deducted. Sizes are not known in advance: every message counts as large as the
        largest message that came since the queue was last empty, and as USUAL_BYTES at least.
        """
        cdef long long room = UNLIMITED, free_bytes
        if self.max_messages:
            room = self.max_messages - self.queue.limited_count() - self.arriving_count
        if self.max_bytes:
            free_bytes = self.max_bytes - self.queue.limited_bytes() - self.arriving_bytes
            # While any bytes are free the queue takes one more message, however large: else a small rest would stop all
            # producers.
            room = min(room, max(free_bytes // max(self.largest_bytes, <long long>USUAL_BYTES), free_bytes > 0))
        return room

    @property
    def free_count(self):
        """How many more messages the queue's limit on their number allows; UNLIMITED without a limit.

        Messages that wait for the disk count as in the queue.
        """
        if not self.max_messages:
            return UNLIMITED
        return max(0, self.max_messages - self.queue.limited_count() - self.arriving_count)

    @property
    def free_bytes(self):
        """How many more bytes of messages the queue's limit on bytes allows; UNLIMITED without a limit.

        Messages that wait for the disk count as in the queue.
        """
        if not self.max_bytes:
            return UNLIMITED
        return max(0, self.max_bytes - self.queue.limited_bytes() - self.arriving_bytes)

    cdef int note_change(self) except -1:
        """Have the queue's depth recorded in the link log this second; called when the number of messages changes."""
        if not self.is_restless:
            self.is_restless = True
            self.recorder.note_restless(self)
        return 0

    def rest(self):
        """Note that the link log has recorded the queue's depth, so that `note_change` asks for a new record again."""
        self.is_restless = False

    cdef void count_in(self, QueuedMessage message) noexcept:
        if self.row is None and not message.is_stored and not message.is_large:
            self.passing_bytes += message.size_bytes

    cdef void count_out(self, QueuedMessage message) noexcept:
        if self.row is None and not message.is_stored and not message.is_large:
            self.passing_bytes -= message.size_bytes

    def summary(self, double now):
        cdef QueueProducer producer
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
        """Number of messages that wait for the disk, or for room, before they enter this queue."""
        return self.arriving_count + len(self.late or ())

    @property
    def is_temporary(self):
        """Whether this is a queue in memory, no subscription: made at its first use, deleted once unused and empty."""
        return self.row is None and not self.is_subscription

    @property
    def is_forsaken(self):
        """Whether this queue in memory is to be deleted: a subscription without links, or an unused, empty queue.

        False for every durable queue and subscription.
        """
        if self.is_durable or self.queue.is_used or self.producer_count:
            return False
        return self.is_subscription or self.queue.is_empty
