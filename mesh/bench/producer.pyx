"""The producers of the load generator: send messages, and check that each is settled once.

BenchProducer     sends as fast as credit and the session window allow
BoundedProducer   limits the messages without an outcome, and notes how long each waits for its outcome
PacedProducer     sends a message each interval, with the time in its body

A body has the number of the run, the number of the message, a time in nanoseconds, and filler. The run tells the
messages of one measurement from others on the address; a receiver checks the numbers. A message that fits into a frame
is copied from a frame made once, in which only the numbers and the time change.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from mesh.bench.bench_connection cimport OUT_BOUND_BYTES, BenchLink
from mesh.bench.frames cimport (
    CONTINUED_HEAD_BYTES, Disposition, Flow, SMALL_FRAME_BYTES, STAMP_BYTES, TRANSFER_HEAD_BYTES, u8, u32, u64,
    write32, write64, write_disposition, write_transfer_head,
)

from array import array

from mesh.bench.faults import PeerGone

cdef enum:
    # Offsets of delivery-id and delivery-tag in the frame from which a producer copies each message.
    ID_AT = 16
    TAG_AT = 22
    ACCEPTED = 0x24
    MODIFIED = 0x27
    NO_STATE = 1
    FILLER_BYTES = 65536

MIN_BODY_BYTES = STAMP_BYTES
OUTCOMES = {0x24: "accepted", 0x25: "rejected", 0x26: "released", 0x27: "modified"}

cdef u8 filler[FILLER_BYTES]
memset(filler, c"x", FILLER_BYTES)


cdef class BenchProducer(BenchLink):
    """A link that sends ``count`` messages as fast as credit and the session window allow.

    Invariant: ``settled <= sent <= count``; pre-settled messages count as settled.
    """

    def __init__(self, channel, what, remote_window, *, u32 run, u32 count, size_t body_bytes, u32 frame_bytes,
                 bint is_presettled=False, bint is_durable=False, double bytes_per_s=INFINITY):
        """Make a producer of ``count`` messages, each with a body of ``body_bytes`` bytes.

        ``frame_bytes``: the size of the greatest frame that the peer takes. ``bytes_per_s``: limit of the link's rate,
        which applies only to messages of several frames.
        """
        super().__init__(channel, what, remote_window, 0)
        if body_bytes < STAMP_BYTES:
            raise ValueError(f"expected a body of at least {STAMP_BYTES} bytes, got {body_bytes}")
        self.run, self.count, self.body_bytes = run, count, body_bytes
        self.is_presettled = is_presettled
        self.bytes_per_s = bytes_per_s
        self.outcomes = <u8 *>calloc(count + 1, 1)
        if self.outcomes is NULL:
            raise MemoryError
        self._make_prefix(is_durable)
        self.payload_bytes = self.prefix_bytes + body_bytes - STAMP_BYTES
        if TRANSFER_HEAD_BYTES + self.payload_bytes <= frame_bytes and self.payload_bytes <= FILLER_BYTES:
            self._make_frame()

    def __dealloc__(self):
        free(self.frame)
        free(self.outcomes)
        free(self.stamps)

    def _make_prefix(self, bint is_durable):
        """Make the bytes of each message before the filler: a header section if the message is durable, the head of the
        data section, and a stamp with the number of the run. [3.2.1] header, [3.2.6] data
        """
        cdef bytes head = b"\x00\x53\x70\xc0\x02\x01\x41" if is_durable else b""
        if self.body_bytes < 256:
            head += b"\x00\x53\x75\xa0" + self.body_bytes.to_bytes(1, "big")
        else:
            head += b"\x00\x53\x75\xb0" + self.body_bytes.to_bytes(4, "big")
        head += self.run.to_bytes(4, "big") + bytes(STAMP_BYTES - 4)
        self.prefix_bytes = len(head)
        memcpy(self.prefix, <const u8 *>head, len(head))

    def _make_frame(self):
        self.frame_bytes = TRANSFER_HEAD_BYTES + self.payload_bytes
        self.frame = <u8 *>malloc(self.frame_bytes)
        if self.frame is NULL:
            raise MemoryError
        write_transfer_head(self.frame, self.channel, 0, True, self.is_presettled, False, self.payload_bytes)
        self._copy_payload(self.frame + TRANSFER_HEAD_BYTES, self.payload_bytes)

    @property
    def outcomes_counted(self):
        """Return the number of messages for each outcome that the receiver gave, by the outcome's name; `none` stands
        for settled without an outcome. Pre-settled messages are not counted.
        """
        names = {**OUTCOMES, NO_STATE: "none"}
        return {names.get(code, f"0x{code:02x}"): self.tally[code] for code in range(256) if self.tally[code]}

    cdef u32 limit(self, double now) except? 0xFFFFFFFF:
        """Return the number of messages that this producer may have sent by the time ``now`` in all: here, each of its
        messages. A subclass may allow fewer.
        """
        return self.count

    cdef bint produce(self, double now) except -1:
        cdef u32 limit = self.limit(now)
        if self.frame is not NULL:
            return self._produce_whole(limit, now)
        return self._produce_part(limit, now)

    cdef bint _produce_whole(self, u32 limit, double now) except -1:
        cdef u8 *at
        cdef size_t size = self.frame_bytes
        while self.sent < limit and self.credit > 0 and self.remote_window > 0:
            if self.carrier.outbox_to - self.carrier.outbox_from >= OUT_BOUND_BYTES:
                return True
            at = self.carrier.room(size)
            memcpy(at, self.frame, size)
            write32(at + ID_AT, self.sent)
            write32(at + TAG_AT, self.sent)
            self._stamp_frame(at + TRANSFER_HEAD_BYTES)
            self.carrier.wrote(size)
            self.next_outgoing_id += 1
            self.remote_window -= 1
            self._count_sent(now)
        return False

    cdef void _stamp_frame(self, u8 *payload) noexcept:
        """Write into a copy of the template's payload what differs between messages."""
        cdef u8 *stamp = payload + self.prefix_bytes - STAMP_BYTES
        write32(stamp + 4, self.sent)
        if self.stamps is not NULL:
            write64(stamp + 8, self.stamps[self.sent])

    cdef bint _produce_part(self, u32 limit, double now) except -1:
        """Write one frame of a message that takes several frames; return True if a frame was written, and False if
        the session window, credit, ``limit`` or ``bytes_per_s`` allows no frame yet.
        """
        cdef u8 *at
        cdef bint is_first = self.payload_at == 0
        cdef size_t left, size, head
        if self.remote_window <= 0 or (is_first and (self.sent >= limit or self.credit <= 0)):
            return False
        if self._next_part_at() > now:
            return False
        if is_first:
            self._stamp_prefix()
        left = self.payload_bytes - self.payload_at
        head = TRANSFER_HEAD_BYTES if is_first else CONTINUED_HEAD_BYTES
        size = min(left, <size_t>self.carrier.peer_frame_bytes - head)
        at = self.carrier.room(head + size)
        write_transfer_head(at, self.channel, self.sent, is_first, self.is_presettled, size < left, size)
        self._copy_payload(at + head, size)
        self.carrier.wrote(head + size)
        self.next_outgoing_id += 1
        self.remote_window -= 1
        self.carrier.moved_at = now
        if self.started_at == 0:
            self.started_at = now
        self.payload_at = 0 if size == left else self.payload_at + size
        if size == left:
            self._count_sent(now)
        return True

    cdef double _next_part_at(self) noexcept:
        """Return the monotonic time in s from which the limit ``bytes_per_s`` allows the next frame of a message; 0
        before the first frame.
        """
        if self.started_at == 0:
            return 0.0
        return self.started_at + (<double>self.sent * self.payload_bytes + self.payload_at) / self.bytes_per_s

    cdef double due_at(self, double now) noexcept:
        cdef double due = self._next_part_at()
        # Only the limit ``bytes_per_s`` ends by time: credit, window and outcomes arrive in frames of the peer.
        return due if self.payload_at and due > now else INFINITY

    def _stamp_prefix(self):
        write32(self.prefix + self.prefix_bytes - STAMP_BYTES + 4, self.sent)
        if self.stamps is not NULL:
            write64(self.prefix + self.prefix_bytes - STAMP_BYTES + 8, self.stamps[self.sent])

    cdef void _copy_payload(self, u8 *to, size_t size) noexcept:
        """Copy ``size`` bytes of the payload, from the offset ``payload_at`` on: first the prefix, then filler."""
        cdef size_t from_prefix = 0
        if self.payload_at < self.prefix_bytes:
            from_prefix = min(size, self.prefix_bytes - self.payload_at)
            memcpy(to, self.prefix + self.payload_at, from_prefix)
        memcpy(to + from_prefix, filler, size - from_prefix)

    cdef void _count_sent(self, double now) noexcept:
        if self.started_at == 0:
            self.started_at = now
        self.carrier.moved_at = now
        self.sent += 1
        self.credit -= 1
        self.delivery_count += 1
        if self.is_presettled:
            self.settled += 1
            self._look_done(now)

    cdef void _look_done(self, double now) noexcept:
        if self.settled == self.count:
            self.ended_at = now
            self.is_done = True

    cdef int on_flow(self, Flow *flow, double now) except -1:
        cdef u32 seen = flow.delivery_count if flow.has_delivery_count else 0
        self.credit = <long long>flow.credit + <int>(seen - self.delivery_count)
        if flow.wants_drain and self.credit > 0 and self.payload_at == 0:
            self.delivery_count += <u32>self.credit
            self.credit = 0
            self.say_flow(0, True)
        elif flow.wants_echo:
            self.say_flow(<u32>max(self.credit, 0), False)
        return 0

    cdef int on_disposition(self, Disposition *disposition, double now) except -1:
        """Count the outcomes in a disposition of the receiver. [2.6.12]

        Deliveries with an outcome that the receiver has not settled are settled here. A disposition with neither an
        outcome nor settlement changes nothing. Raise PeerGone for deliveries that were never sent.
        """
        cdef u8 *at
        cdef u32 number = disposition.first
        cdef int state = disposition.state
        cdef bint is_terminal = ACCEPTED <= state <= MODIFIED
        if not disposition.is_from_receiver or not (disposition.is_settled or is_terminal):
            return 0
        if disposition.last >= self.sent or disposition.first > disposition.last:
            raise PeerGone(
                f"{self.what}: the peer settled messages {disposition.first} to {disposition.last} "
                f"when {self.sent} had been sent"
            )
        while number <= disposition.last:
            self._settle(number, state if state else NO_STATE, now)
            number += 1
        if not disposition.is_settled:
            at = self.carrier.room(SMALL_FRAME_BYTES)
            self.carrier.wrote(
                write_disposition(at, self.channel, False, disposition.first, disposition.last, state)
            )
        self._look_done(now)
        return 0

    cdef void _settle(self, u32 number, int state, double now) noexcept:
        if self.outcomes[number]:
            self.settled_twice += 1
            return
        self.outcomes[number] = <u8>state
        self.tally[state & 255] += 1
        self.settled += 1


cdef class BoundedProducer(BenchProducer):
    """A producer that stops sending while ``in_flight`` of its messages have no outcome yet."""

    def __init__(self, channel, what, remote_window, *, u32 in_flight, **options):
        super().__init__(channel, what, remote_window, **options)
        self.in_flight = in_flight
        self.sent_at = <double *>calloc(self.count + 1, sizeof(double))
        self.took_s = <double *>calloc(self.count + 1, sizeof(double))
        if self.sent_at is NULL or self.took_s is NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.sent_at)
        free(self.took_s)

    @property
    def waits_s(self):
        """Return an array of the seconds that each message waited for its outcome, in order of sending; a message
        without an outcome is left out.
        """
        return array("d", [self.took_s[number] for number in range(self.sent) if self.outcomes[number]])

    cdef u32 limit(self, double now) except? 0xFFFFFFFF:
        return min(self.count, self.settled + self.in_flight)

    cdef void _count_sent(self, double now) noexcept:
        self.sent_at[self.sent] = now
        BenchProducer._count_sent(self, now)

    cdef void _settle(self, u32 number, int state, double now) noexcept:
        if not self.outcomes[number]:
            self.took_s[number] = now - self.sent_at[number]
        BenchProducer._settle(self, number, state, now)


cdef class PacedProducer(BenchProducer):
    """A producer that sends at ``rate_per_s`` for ``seconds``, or longer, until the links ``companions`` are done, but
    for at most ``most_seconds``.

    A message's timestamp is the time at which this loop saw that the message was due. So a wait for credit counts as
    latency, as in an application, but lateness of the generator does not.
    """

    def __init__(self, channel, what, remote_window, *, double rate_per_s, double seconds, double most_seconds,
                 list companions, **options):
        super().__init__(channel, what, remote_window, count=<u32>(rate_per_s * most_seconds), **options)
        self.interval_s = 1 / rate_per_s
        self.seconds = seconds
        self.companions = companions
        self.stamps = <u64 *>calloc(self.count + 1, sizeof(u64))
        if self.stamps is NULL:
            raise MemoryError

    cdef u32 limit(self, double now) except? 0xFFFFFFFF:
        if self.started_at == 0:
            self.started_at = now
        if not self.is_ended:
            self._see(now)
        return self.seen

    cdef int _see(self, double now) except -1:
        cdef double elapsed_s = now - self.started_at
        cdef u32 due = min(self.count, <u32>(elapsed_s / self.interval_s) + 1)
        while self.seen < due:
            self.stamps[self.seen] = <u64>(now * 1e9)
            self.seen += 1
        if self.seen == self.count or (elapsed_s >= self.seconds and self._are_companions_done()):
            self.is_ended = True
            self.count = self.seen
            self._look_done(now)
        return 0

    cdef bint _are_companions_done(self) except -1:
        cdef BenchLink companion
        for companion in self.companions:
            if not companion.is_done:
                return False
        return True

    cdef double due_at(self, double now) noexcept:
        return INFINITY if self.is_ended else self.started_at + self.seen * self.interval_s
