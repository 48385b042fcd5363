"""Thousands of connections of the load generator in one loop, which looks only at connections with something to do.

    SharingConsumer   one of many consumers that together receive each message once, and their SharedReceipts
    TurnProducer      one of many producers that send one message each in turn, at an even rate, and their SendingTurns
    run_crowd         the loop

The loop of `mesh.bench.bench_connection` looks at each connection in each round, which is cheaper for few connections.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport EINTR, errno
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from mesh.bench.bench_connection cimport BenchConnection, clock
from mesh.bench.consumer cimport BenchConsumer
from mesh.bench.frames cimport STAMP_BYTES, u8, u32, u64, write32
from mesh.bench.producer cimport BenchProducer

import os
from array import array

cdef extern from "<sys/epoll.h>" nogil:
    ctypedef union epoll_data_t:
        u32 u32
    struct epoll_event:
        u32 events
        epoll_data_t data
    int epoll_create1(int)
    int epoll_ctl(int, int, int, epoll_event *)
    int epoll_wait(int, epoll_event *, int, int)
    const int EPOLL_CTL_ADD
    const int EPOLL_CTL_MOD
    const int EPOLLIN
    const int EPOLLOUT

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <poll.h>
    #include <time.h>
    """
    struct timespec:
        long tv_sec
        long tv_nsec
    struct pollfd:
        int fd
        short events
        short revents
    int ppoll(pollfd *, unsigned long, const timespec *, const void *) nogil
    const short POLLIN

cdef enum:
    MAX_EVENTS = 512

# The longest wait of the loop, in s, and the time after which every connection is looked at, for its empty frames.
cdef double TICK_S = 0.2
cdef double ROUND_S = 1.0


cdef class SharedReceipts:
    """The ``count`` messages that several consumers receive together, and the latency of each if ``is_timed``."""

    def __init__(self, u32 count, bint is_timed=False):
        self.count = count
        self.seen = <u8 *>calloc(count + 1, 1)
        self.took_ns = <u64 *>calloc(count + 1, sizeof(u64)) if is_timed else NULL
        if self.seen is NULL or (is_timed and self.took_ns is NULL):
            raise MemoryError

    def __dealloc__(self):
        free(self.seen)
        free(self.took_ns)

    @property
    def took_us(self):
        """Return an array with the latency in us of each message that was received, in order of the numbers."""
        if self.took_ns is NULL:
            return array("d")
        return array("d", [self.took_ns[number] / 1e3 for number in range(self.count) if self.seen[number]])


cdef class SharingConsumer(BenchConsumer):
    """A consumer whose ``received`` is its share of the messages of ``receipts``."""

    def __init__(self, channel, what, next_incoming_id, delivery_count, *, SharedReceipts receipts not None, **options):
        super().__init__(channel, what, next_incoming_id, delivery_count, count=0, **options)
        self.receipts = receipts
        self.count = receipts.count

    cdef int _note(self, double now) except -1:
        cdef u32 number = self.stamp.number
        cdef u64 now_ns = <u64>(now * 1e9)
        if self.receipts.seen[number]:
            self.doubled += 1
            return 0
        self.receipts.seen[number] = 1
        self.receipts.received += 1
        self.receipts.ended_at = self.ended_at = now
        self.received += 1
        if self.receipts.took_ns is not NULL and now_ns > self.stamp.sent_ns:
            self.receipts.took_ns[number] = now_ns - self.stamp.sent_ns
        if number < self.next:
            self.reordered += 1
        else:
            self.next = number + 1
        return 0


cdef class TurnProducer(BenchProducer):
    """A producer that sends one message more each time that its turn comes; message k of all belongs to producer
    ``k % step``, which has this number as ``index``.
    """

    def __init__(self, channel, what, remote_window, *, u32 index, u32 step, **options):
        super().__init__(channel, what, remote_window, **options)
        if self.frame is NULL:
            raise ValueError(f"expected messages that fit into one frame, got bodies of {self.body_bytes} bytes")
        self.index, self.step = index, step
        self.stamps = <u64 *>calloc(self.count + 1, sizeof(u64))
        if self.stamps is NULL:
            raise MemoryError

    cdef int allow(self, double now) except -1:
        self.stamps[self.allowed] = <u64>(now * 1e9)
        self.allowed += 1
        return 0

    cdef u32 limit(self, double now) except? 0xFFFFFFFF:
        return self.allowed

    cdef void _stamp_frame(self, u8 *payload) noexcept:
        BenchProducer._stamp_frame(self, payload)
        write32(payload + self.prefix_bytes - STAMP_BYTES + 4, self.sent * self.step + self.index)


cdef class SendingTurns:
    """The times of ``count`` messages at ``rate_per_s``, which ``producers`` send in turn."""

    def __init__(self, list producers not None, double rate_per_s, u32 count):
        self.producers, self.interval_s, self.count = producers, 1 / rate_per_s, count

    cdef bint are_settled(self) except -1:
        cdef BenchProducer producer
        for producer in self.producers:
            if producer.settled < producer.count:
                return False
        return True


def run_crowd(list carriers not None, SharedReceipts receipts not None, double stall_s, int control=-1,
              double quiet_s=1.0, SendingTurns turns=None):
    """Run the connections until all messages of ``receipts`` are received, and settled if ``turns`` sends them.

    Return False if nothing has moved for ``stall_s`` s before; once the descriptor ``control`` is readable, ``quiet_s``
    replaces ``stall_s``. Raise PeerGone, Malformed or BenchRefused.
    """
    cdef CrowdPoll poll = CrowdPoll(carriers)
    cdef double now, due
    cdef TurnProducer producer
    poll.touch_all(clock())
    while True:
        now = clock()
        due = now + TICK_S
        if turns is not None:
            if turns.started_at == 0:
                turns.started_at = now
            while turns.released < turns.count and turns.started_at + turns.released * turns.interval_s <= now:
                producer = turns.producers[turns.released % len(turns.producers)]
                producer.allow(now)
                turns.released += 1
                poll.touch(producer.carrier, now)
            if turns.released < turns.count:
                due = min(due, turns.started_at + turns.released * turns.interval_s)
        if receipts.received >= receipts.count and (turns is None or turns.are_settled()):
            return True
        if now - poll.moved_at > stall_s:
            return False
        if now - poll.touched_all_at > ROUND_S:
            poll.touch_all(now)
        if poll.wait(due - now, control):
            control, stall_s = -1, quiet_s


cdef class CrowdPoll:
    """Waits for the sockets of many connections; each carries its index in the list."""

    cdef list carriers
    cdef dict index_of
    cdef set blocked
    cdef int descriptor
    cdef double moved_at, touched_all_at

    def __cinit__(self):
        self.descriptor = -1

    def __init__(self, list carriers):
        cdef BenchConnection carrier
        self.carriers = carriers
        self.blocked = set()
        self.index_of = {carrier.socket: index for index, carrier in enumerate(carriers)}
        self.moved_at = self.touched_all_at = clock()
        self.descriptor = epoll_create1(0)
        if self.descriptor < 0:
            raise OSError(errno, os.strerror(errno))
        for carrier in carriers:
            self.ask(EPOLL_CTL_ADD, carrier, EPOLLIN)

    def __dealloc__(self):
        if self.descriptor >= 0:
            os.close(self.descriptor)

    cdef int ask(self, int what, BenchConnection carrier, u32 events) except -1:
        cdef epoll_event event
        memset(&event, 0, sizeof(event))
        event.events = events
        event.data.u32 = self.index_of[carrier.socket]
        if epoll_ctl(self.descriptor, what, carrier.socket, &event) < 0:
            raise OSError(errno, os.strerror(errno))
        return 0

    cdef int touch_all(self, double now) except -1:
        cdef BenchConnection carrier
        self.touched_all_at = now
        for carrier in self.carriers:
            self.touch(carrier, now)
        return 0

    cdef int touch(self, BenchConnection carrier, double now) except -1:
        """Let the links of a connection produce, and send."""
        while carrier.fill(now) and not carrier.is_blocked:
            carrier.flush(now)
        carrier.flush(now)
        self.moved_at = max(self.moved_at, carrier.moved_at)
        if carrier.is_blocked != (carrier.socket in self.blocked):
            self.ask(EPOLL_CTL_MOD, carrier, EPOLLIN | EPOLLOUT if carrier.is_blocked else EPOLLIN)
            self.blocked ^= {carrier.socket}
        return 0

    cdef bint wait(self, double delay_s, int control) except -1:
        """Wait ``delay_s`` at most for a connection or ``control`` to be ready, and serve the connections that are.

        Return True if ``control`` is readable.
        """
        cdef pollfd polled[2]
        cdef timespec delay
        cdef epoll_event events[MAX_EVENTS]
        cdef int ready, number
        cdef BenchConnection carrier
        delay_s = max(delay_s, 0.0)
        delay.tv_sec = <long>delay_s
        delay.tv_nsec = <long>((delay_s - delay.tv_sec) * 1e9)
        polled[0].fd, polled[0].events, polled[0].revents = self.descriptor, POLLIN, 0
        polled[1].fd, polled[1].events, polled[1].revents = control, POLLIN, 0
        with nogil:
            ready = ppoll(polled, 2, &delay, NULL)
        if ready < 0 and errno != EINTR:
            raise OSError(errno, os.strerror(errno))
        PyErr_CheckSignals()
        if ready > 0 and polled[0].revents:
            ready = epoll_wait(self.descriptor, events, MAX_EVENTS, 0)
            for number in range(ready):
                carrier = self.carriers[events[number].data.u32]
                carrier.is_blocked = False
                if carrier.read_some():
                    carrier.parse()
                self.touch(carrier, clock())
        return ready >= 0 and polled[1].revents != 0
