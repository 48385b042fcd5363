"""The load generator's loop: moves frames in and out of many sockets at once, without asyncio and needless copies.

    BenchConnection   a connection: bytes read and not parsed yet, and bytes to be sent
    BenchLink         a session with its only link; producers and consumers subclass this class
    run               the loop: let links produce frames, send, wait, read

Spec: AMQP 1.0 [2.5.6] session flow control, [2.6.7] link flow control.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport EAGAIN, EINTR, errno
from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove

from mesh.bench.frames cimport (
    DISPOSITION, FLOW, SMALL_FRAME_BYTES, TRANSFER, read_disposition, read_flow, read_transfer, take_frame,
    write_empty, write_flow,
)

import os

from mesh.bench.faults import PeerGone
from mesh.bench.performatives import why_ended

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int clock_gettime(int, timespec *)
    const int CLOCK_MONOTONIC

cdef extern from "<sys/socket.h>" nogil:
    ssize_t c_send "send" (int, const void *, size_t, int)
    ssize_t c_recv "recv" (int, void *, size_t, int)
    const int MSG_DONTWAIT
    const int MSG_NOSIGNAL

cdef extern from "<sys/ioctl.h>" nogil:
    int ioctl(int, unsigned long, ...)

cdef extern from "<linux/sockios.h>" nogil:
    const unsigned long SIOCOUTQNSD

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <poll.h>
    """
    struct pollfd:
        int fd
        short events
        short revents
    int ppoll(pollfd *, unsigned long, const timespec *, const void *) nogil
    const short POLLIN
    const short POLLOUT

cdef enum:
    MAX_FRAME = 65536
    MAX_CHANNELS = 256
    MAX_POLLED = 1024

FRAME_BYTES = MAX_FRAME

# The longest wait of the loop for sockets, in s, after which the clock is read again.
cdef double TICK_S = 0.2


cdef double clock() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + now.tv_nsec * 1e-9


cdef class BenchConnection:
    def __cinit__(self):
        self.inbox = <u8 *>malloc(MAX_FRAME + READ_BYTES)
        self.outbox_room = OUT_BOUND_BYTES + MAX_FRAME
        self.outbox = <u8 *>malloc(self.outbox_room)
        if self.inbox is NULL or self.outbox is NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.inbox)
        free(self.outbox)

    def __init__(self, int socket, u32 peer_frame_bytes, double beat_s, u32 unsent_bound_bytes=0):
        """Make the connection on a non-blocking socket whose handshake is done.

        ``beat_s``: after this time in s without sending, an empty frame keeps the connection alive.
        ``unsent_bound_bytes``: while the kernel holds at least this number of unsent bytes, only the first link
        produces; 0 is no bound.
        """
        self.socket = socket
        self.peer_frame_bytes = min(peer_frame_bytes, <u32>MAX_FRAME)
        self.beat_s = beat_s
        self.unsent_bound_bytes = unsent_bound_bytes
        self.links = []
        self.by_channel = [None] * MAX_CHANNELS
        self.said_at = self.moved_at = clock()

    def add(self, BenchLink link not None, u32 peer_channel):
        """Add a link; in every round of the loop, the link added first produces first."""
        if peer_channel >= MAX_CHANNELS:
            raise ValueError(f"expected a channel of at most {MAX_CHANNELS - 1}, got {peer_channel}")
        self.links.append(link)
        self.by_channel[peer_channel] = link
        link.carrier = self

    def feed(self, bytes leftover):
        """Parse ``leftover``, the input that the handshake has read and that is no part of the handshake."""
        if len(leftover) > MAX_FRAME:
            raise ValueError(f"expected at most {MAX_FRAME} bytes, got {len(leftover)}")
        memcpy(self.inbox + self.inbox_to, <const u8 *>leftover, len(leftover))
        self.inbox_to += len(leftover)
        self.parse()

    cdef u8 *room(self, size_t size) except NULL:
        """Return the place in the output buffer for the next ``size`` bytes, after growing the buffer if needed."""
        cdef u8 *bigger
        if self.outbox_to + size > self.outbox_room:
            bigger = <u8 *>realloc(self.outbox, self.outbox_to + size + OUT_BOUND_BYTES)
            if bigger is NULL:
                raise MemoryError
            self.outbox = bigger
            self.outbox_room = self.outbox_to + size + OUT_BOUND_BYTES
        return self.outbox + self.outbox_to

    cdef void wrote(self, size_t size) noexcept:
        self.outbox_to += size

    cdef bint fill(self, double now) except -1:
        """Let the links write frames until the output buffer is full or no link has more; return True if a link has
        more. No link writes while the socket takes no bytes. While the kernel holds too many unsent bytes, only the
        first link writes, once.
        """
        cdef size_t count = len(self.links)
        cdef size_t index
        cdef bint has_more = False
        cdef BenchLink link
        if self.is_blocked:
            return False
        self.is_kernel_full = self._has_kernel_enough()
        if self.is_kernel_full:
            # The first link has small messages, which do not wait for the bulk data of the other links.
            (<BenchLink>self.links[0]).produce(now)
            return False
        self.turn += 1
        while self.outbox_to - self.outbox_from < OUT_BOUND_BYTES:
            link = self.links[0]
            has_more = link.produce(now)
            for index in range(count - 1):
                if self.outbox_to - self.outbox_from >= OUT_BOUND_BYTES:
                    return True
                link = self.links[1 + (self.turn + index) % (count - 1)]
                has_more |= link.produce(now)
            if not has_more:
                break
        return has_more

    cdef bint _has_kernel_enough(self) noexcept:
        cdef int unsent = 0
        if self.unsent_bound_bytes == 0:
            return False
        ioctl(self.socket, SIOCOUTQNSD, &unsent)
        return <u32>unsent >= self.unsent_bound_bytes

    cdef int flush(self, double now) except -1:
        cdef ssize_t sent
        if self.outbox_from == self.outbox_to and now - self.said_at > self.beat_s:
            self.wrote(write_empty(self.room(SMALL_FRAME_BYTES)))
        while self.outbox_from < self.outbox_to:
            sent = c_send(
                self.socket,
                self.outbox + self.outbox_from,
                self.outbox_to - self.outbox_from,
                MSG_DONTWAIT | MSG_NOSIGNAL,
            )
            if sent < 0:
                if errno == EAGAIN:
                    self.is_blocked = True
                    return 0
                if errno != EINTR:
                    raise PeerGone(f"connection lost: {os.strerror(errno)}")
            else:
                self.outbox_from += sent
                self.said_at = now
        self.outbox_from = self.outbox_to = 0
        self.is_blocked = False
        return 0

    cdef int read_some(self) except -1:
        """Read from the socket once; return 1 if bytes were read, 0 if there were none. Raise PeerGone for a lost
        connection.
        """
        cdef ssize_t got
        if self.inbox_from:
            self.inbox_to -= self.inbox_from
            memmove(self.inbox, self.inbox + self.inbox_from, self.inbox_to)
            self.inbox_from = 0
        got = c_recv(self.socket, self.inbox + self.inbox_to, READ_BYTES, MSG_DONTWAIT)
        if got > 0:
            self.inbox_to += got
            return 1
        if got == 0:
            raise PeerGone("connection lost: the peer closed it without an error")
        if errno == EAGAIN or errno == EINTR:
            return 0
        raise PeerGone(f"connection lost: {os.strerror(errno)}")

    cdef int parse(self) except -1:
        cdef Frame frame
        cdef BenchLink link
        cdef double now = clock()
        while take_frame(self.inbox + self.inbox_from, self.inbox + self.inbox_to, MAX_FRAME, &frame):
            self.inbox_from += frame.end - frame.start
            if frame.code != 0:
                self.on_frame(&frame, now)
        for link in self.links:
            link.end_batch(now)
        return 0

    cdef int on_frame(self, Frame *frame, double now) except -1:
        cdef Transfer transfer
        cdef Disposition disposition
        cdef Flow flow
        cdef BenchLink link = self.by_channel[frame.channel] if frame.channel < MAX_CHANNELS else None
        if link is None or frame.code not in (TRANSFER, DISPOSITION, FLOW):
            raise why_ended(frame.start[: frame.end - frame.start], link.what if link is not None else "connection")
        if frame.code == TRANSFER:
            read_transfer(frame, &transfer)
            link.next_incoming_id += 1
            self.moved_at = now
            link.on_transfer(&transfer, now)
        elif frame.code == DISPOSITION:
            read_disposition(frame, &disposition)
            self.moved_at = now
            link.on_disposition(&disposition, now)
        else:
            read_flow(frame, &flow)
            # A flow without next-incoming-id says that the peer has not seen the session's begin yet: the peer has got
            # no transfer, so its next-incoming-id counts as 0, the number of this session's first transfer. [2.5.6]
            link.remote_window = <long long>flow.incoming_window + <int>(flow.next_incoming_id - link.next_outgoing_id)
            if flow.has_handle:
                link.on_flow(&flow, now)
        return 0

    cdef bint is_done(self) except -1:
        cdef BenchLink link
        for link in self.links:
            if not link.is_done:
                return False
        return self.outbox_from == self.outbox_to

    cdef double due_at(self, double now) noexcept:
        cdef BenchLink link
        cdef double due = self.said_at + self.beat_s
        for link in self.links:
            due = min(due, link.due_at(now))
        return due


cdef class BenchLink:
    """The base of the load generator's producers and consumers: the counters of a session and of its only link, which
    has handle 0. A negative session window, or negative credit, lets the link send nothing, as zero does.
    """

    def __init__(self, u32 channel, str what, u32 remote_window, u32 next_incoming_id, u32 delivery_count=0):
        """Make the link with handle 0 of the session ``channel``.

        ``what`` begins the texts of the link's errors, such as `cannot send to a`. ``delivery_count`` is the link's
        initial delivery-count, which the sender chooses.
        """
        self.channel = channel
        self.what = what
        self.remote_window = remote_window
        self.next_incoming_id = next_incoming_id
        self.delivery_count = delivery_count

    cdef bint produce(self, double now) except -1:
        """Write the link's next frames into the connection's output buffer; return True if the link has more to
        write at this time. The base class writes nothing.
        """
        return False

    cdef int on_transfer(self, Transfer *transfer, double now) except -1:
        raise PeerGone(f"{self.what}: the peer sent a message to a sender")

    cdef int on_disposition(self, Disposition *disposition, double now) except -1:
        return 0

    cdef int on_flow(self, Flow *flow, double now) except -1:
        return 0

    cdef int end_batch(self, double now) except -1:
        return 0

    cdef double due_at(self, double now) noexcept:
        """Return the monotonic time in s at which the loop has to call `produce` again, even if no frame has come in;
        infinity if only a frame of the peer lets the link write more.
        """
        return INFINITY

    cdef int say_flow(self, u32 credit, bint is_drained) except -1:
        cdef BenchConnection carrier = self.carrier
        carrier.wrote(
            write_flow(
                carrier.room(SMALL_FRAME_BYTES),
                self.channel,
                self.next_incoming_id,
                self.next_outgoing_id,
                self.delivery_count,
                credit,
                is_drained,
            )
        )
        return 0


def run(list carriers, double stall_s, int control=-1, double quiet_s=1.0, double limit_s=INFINITY):
    """Run the connections until every link is done and all output is sent (return True), or until ``stall_s`` s have
    passed without a transfer or disposition, sent or received, or ``limit_s`` s are over (return False).

    Once the descriptor ``control`` is readable, ``quiet_s`` replaces ``stall_s``. Raise PeerGone, Malformed or
    BenchRefused.
    """
    cdef pollfd polled[MAX_POLLED]
    cdef Py_ssize_t index, count = len(carriers)
    cdef BenchConnection carrier
    cdef bint is_busy, are_done
    cdef double now, due, moved_at = clock()
    cdef double ends_at = moved_at + limit_s
    if count >= MAX_POLLED:
        raise ValueError(f"expected fewer than {MAX_POLLED} connections, got {count}")
    while True:
        now = clock()
        is_busy, are_done = False, True
        due = now + TICK_S
        for index in range(count):
            carrier = carriers[index]
            if carrier.fill(now):
                is_busy = True
            carrier.flush(now)
            are_done &= carrier.is_done()
            due = min(due, carrier.due_at(now))
            moved_at = max(moved_at, carrier.moved_at)
            polled[index].fd = carrier.socket
            polled[index].events = POLLIN | (POLLOUT if carrier.is_blocked or carrier.is_kernel_full else 0)
        if are_done:
            return True
        if now - moved_at > stall_s or now > ends_at:
            return False
        polled[count].fd, polled[count].events, polled[count].revents = control, POLLIN, 0
        wait(polled, count + 1, 0.0 if is_busy else due - now)
        if polled[count].revents:
            control, stall_s = -1, quiet_s
        for index in range(count):
            if polled[index].revents:
                carrier = carriers[index]
                carrier.is_blocked = False
                if carrier.read_some():
                    carrier.parse()


cdef int wait(pollfd *polled, unsigned long count, double delay_s) except -1:
    cdef timespec delay
    cdef int ready
    delay_s = max(delay_s, 0.0)
    delay.tv_sec = <long>delay_s
    delay.tv_nsec = <long>((delay_s - delay.tv_sec) * 1e9)
    with nogil:
        ready = ppoll(polled, count, &delay, NULL)
    if ready < 0 and errno != EINTR:
        raise OSError(errno, os.strerror(errno))
    PyErr_CheckSignals()
    return 0
