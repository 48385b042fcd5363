"""The consumers of the load generator: receive messages, and check that each arrives once, whole and in order.

BenchConsumer     accepts messages, in ranges or one by one
HoldingConsumer   settles no message
TimedConsumer     keeps the latency of each message that a PacedProducer in this process sends
"""

from libc.stdlib cimport calloc, free

from mesh.bench.bench_connection cimport BenchLink
from mesh.bench.frames cimport (
    Flow, SMALL_FRAME_BYTES, Transfer, read_stamp, u8, u32, u64, write_disposition,
)
from mesh.bench.producer cimport PacedProducer

from array import array

from mesh.bench.faults import Malformed

cdef enum:
    ACCEPTED = 0x24


cdef class BenchConsumer(BenchLink):
    """Receives and accepts messages, and counts faults of delivery.

    ``received`` counts different messages, ``doubled`` repeated ones, ``reordered`` messages that came after a message
    sent later, ``damaged`` messages of a wrong length or number, ``foreign`` messages without the stamp of this run.
    """

    def __init__(self, channel, what, next_incoming_id, delivery_count, *, u32 run, u32 count, size_t body_bytes,
                 u32 window, bint is_each=False):
        super().__init__(channel, what, 0, next_incoming_id, delivery_count)
        self.run, self.count, self.body_bytes, self.window = run, count, body_bytes, window
        self.is_each = is_each
        self.seen = <u8 *>calloc(count + 1, 1)
        if self.seen is NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.seen)

    cdef bint produce(self, double now) except -1:
        # Only the first credit is granted here; `end_batch` grants more when half or more of the credit is used.
        if not self.is_granted:
            self.is_granted = True
            self._grant()
        return False

    def _grant(self):
        self.credit = self.window
        self.say_flow(self.window, False)

    cdef int on_flow(self, Flow *flow, double now) except -1:
        if flow.wants_echo:
            self.say_flow(<u32>self.credit, False)
        return 0

    cdef int on_transfer(self, Transfer *transfer, double now) except -1:
        if not self.is_partial:
            if not transfer.has_id:
                raise Malformed(f"{self.what}: a transfer without delivery-id")
            self.partial_id = transfer.delivery_id
            self.is_partial_settled = transfer.is_settled
            self._begin(transfer.payload, transfer.payload_bytes)
        else:
            self.is_partial_settled |= transfer.is_settled
            self.missing_bytes -= transfer.payload_bytes
        self.is_partial = transfer.has_more and not transfer.is_aborted
        if self.is_partial:
            return 0
        self.delivery_count += 1
        self.credit -= 1
        return 0 if transfer.is_aborted else self._finish(now)

    cdef int _begin(self, const u8 *payload, size_t size) except -1:
        self.is_ours = read_stamp(payload, size, &self.stamp) and self.stamp.run == self.run
        self.missing_bytes = <long long>self.stamp.body_bytes - <long long>self.stamp.present_bytes
        return 0

    cdef int _finish(self, double now) except -1:
        if not self.is_ours:
            self.foreign += 1
        elif self.missing_bytes != 0 or self.stamp.body_bytes != self.body_bytes or self.stamp.number >= self.count:
            self.damaged += 1
        else:
            self._note(now)
        return 0 if self.is_partial_settled else self._settle(self.partial_id)

    cdef int _note(self, double now) except -1:
        cdef u32 number = self.stamp.number
        if self.started_at == 0:
            self.started_at = now
        if self.seen[number]:
            self.doubled += 1
            return 0
        self.seen[number] = 1
        self.received += 1
        self.ended_at = now
        if number < self.next:
            self.reordered += 1
        else:
            self.next = number + 1
        if self.received == self.count:
            self.is_done = True
        return 0

    cdef int _settle(self, u32 number) except -1:
        if self.is_each:
            return self._say_settled(number, number)
        if self.has_range and number == self.last + 1:
            self.last = number
            return 0
        if self.has_range:
            self._say_settled(self.first, self.last)
        self.has_range = True
        self.first = self.last = number
        return 0

    cdef int _say_settled(self, u32 first, u32 last) except -1:
        self.carrier.wrote(
            write_disposition(self.carrier.room(SMALL_FRAME_BYTES), self.channel, True, first, last, ACCEPTED)
        )
        return 0

    cdef int end_batch(self, double now) except -1:
        if self.has_range:
            self.has_range = False
            self._say_settled(self.first, self.last)
        if self.is_granted and self.credit * 2 <= self.window:
            self._grant()
        return 0


cdef class HoldingConsumer(BenchConsumer):
    """A consumer that grants ``window`` credit once, and settles none of the deliveries that it receives."""

    cdef int _settle(self, u32 number) except -1:
        return 0

    cdef int end_batch(self, double now) except -1:
        return 0


cdef class TimedConsumer(BenchConsumer):
    """A consumer that notes the latency of each message.

    The consumer is done when all messages of the producer ``source`` have arrived; their number is known only when the
    producer has ended.
    """

    def __init__(self, channel, what, next_incoming_id, delivery_count, *, PacedProducer source not None, **options):
        super().__init__(channel, what, next_incoming_id, delivery_count, count=source.count, **options)
        self.source = source
        self.sent_ns = <u64 *>calloc(source.count + 1, sizeof(u64))
        self.took_ns = <u64 *>calloc(source.count + 1, sizeof(u64))
        if self.sent_ns is NULL or self.took_ns is NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.sent_ns)
        free(self.took_ns)

    @property
    def samples(self):
        """Return two arrays of nanoseconds: the time at which the producer saw that each message was due, and the
        message's latency since then, in order of arrival. A repeated message is left out.
        """
        size = self.sample_count * sizeof(u64)
        return array("Q", (<u8 *>self.sent_ns)[:size]), array("Q", (<u8 *>self.took_ns)[:size])

    cdef bint produce(self, double now) except -1:
        BenchConsumer.produce(self, now)
        self.is_done = self.source.is_ended and self.received >= self.source.count
        return False

    cdef int _note(self, double now) except -1:
        cdef u64 now_ns = <u64>(now * 1e9)
        cdef u32 before = self.received
        BenchConsumer._note(self, now)
        if self.received > before:
            self.sent_ns[self.sample_count] = self.stamp.sent_ns
            self.took_ns[self.sample_count] = now_ns - self.stamp.sent_ns if now_ns > self.stamp.sent_ns else 0
            self.sample_count += 1
        return 0
