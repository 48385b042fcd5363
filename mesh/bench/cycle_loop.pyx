"""The compiled client of `bench cycles`: connects, attaches, sends one message, waits for its outcome, closes; again.

    CycleFrames   the bytes that a client sends at each step of a cycle
    run_cycles    the loop: a limited number of cycles at once, until all are done

A cycle goes on when the answer to its last step has come: SASL mechanisms, SASL outcome, credit, outcome, close.
Spec: AMQP 1.0 [2.4] connections, [2.6.7] link flow control, [5.3.2] SASL.
"""

from libc.string cimport memmove

from mesh.bench.bench_connection cimport clock
from mesh.bench.frames cimport (
    Disposition, Flow, Frame, TRANSFER_HEAD_BYTES, read32, read_disposition, read_flow, take_frame, u8, u32,
    write_transfer_head,
)

import errno
import select
import socket as sockets

from mesh.bench.faults import Malformed, PeerGone
from mesh.bench.performatives import why_ended
from mesh.client.errors import TimedOut, Unreachable
from wire.transport.os_errors import describe_os_error

cdef enum:
    INBOX_BYTES = 131072
    MAX_FRAME = 65536
    READ_BYTES = 65536
    FLOW = 0x13
    DISPOSITION = 0x15
    DETACH = 0x16
    END = 0x17
    CLOSE = 0x18
    SASL_MECHANISMS = 0x40
    SASL_OUTCOME = 0x44
    ACCEPTED = 0x24
    # A body: descriptor of the section, head of the binary, and the number of the run.
    NUMBER_AT = 9

# The steps of a cycle, each named by what the client waits for.
cdef enum:
    FOR_CONNECT
    FOR_MECHANISMS
    FOR_SASL_OUTCOME
    FOR_CREDIT
    FOR_OUTCOME
    FOR_CLOSE

_SASL_HEADER = b"AMQP\x03\x01\x00\x00"


class CycleFrames:
    """The bytes of each step: ``sasl_init`` (empty without SASL), ``hello`` up to the attach, and ``close``."""

    def __init__(self, sasl_init, hello, payload, close):
        """``payload``: the message, one data section that begins with the numbers of run and message, less than 256
        bytes long.
        """
        self.sasl_init, self.hello, self.close = sasl_init, hello, close
        self.transfer = transfer_of(payload)


def transfer_of(bytes payload not None):
    cdef u8 head[64]
    cdef size_t size = write_transfer_head(head, 0, 0, True, False, False, len(payload))
    return (<const u8 *>head)[:size] + payload


cdef class Cycle:
    """One place among the cycles under way at once; each cycle there has a connection of its own."""

    cdef object socket, frames
    cdef int step
    cdef u32 number
    cdef bint has_outcome
    cdef readonly u32 done, accepted
    cdef u8 inbox[INBOX_BYTES]
    cdef size_t inbox_to

    def __init__(self, frames):
        self.frames = frames

    def begin(self, family, address, u32 number):
        """Connect for the cycle with this number; return the socket's descriptor."""
        self.number = number
        self.step = FOR_CONNECT
        self.inbox_to = 0
        self.socket = sockets.socket(family, sockets.SOCK_STREAM)
        self.socket.setblocking(False)
        self.socket.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
        error = self.socket.connect_ex(address)
        if error not in (0, errno.EINPROGRESS):
            raise Unreachable(f"cannot connect: {describe_os_error(OSError(error, ''))}")
        return self.socket.fileno()

    def connected(self):
        error = self.socket.getsockopt(sockets.SOL_SOCKET, sockets.SO_ERROR)
        if error:
            raise Unreachable(f"cannot connect: {describe_os_error(OSError(error, ''))}")
        if self.frames.sasl_init:
            self.say(_SASL_HEADER, FOR_MECHANISMS)
        else:
            self.say(self.frames.hello, FOR_CREDIT)

    cdef int say(self, bytes data, int step) except -1:
        self.step = step
        # A cycle's few hundred bytes always fit into the empty buffer of a new socket.
        if self.socket.send(data) != len(data):
            raise PeerGone("connection lost: the peer does not read")
        return 0

    def hear(self):
        """Read, and take the next steps; return True if the cycle is done."""
        cdef bytes data
        cdef size_t at = 0
        cdef Frame frame
        try:
            data = self.socket.recv(READ_BYTES)
        except BlockingIOError:
            return False
        except OSError as error:
            raise PeerGone(f"connection lost: {describe_os_error(error)}") from None
        if not data:
            raise PeerGone("connection lost: the peer closed it in the middle of a cycle")
        if self.inbox_to + len(data) > INBOX_BYTES:
            raise Malformed("not AMQP 1.0: a frame that does not end")
        memmove(self.inbox + self.inbox_to, <const u8 *>data, len(data))
        self.inbox_to += len(data)
        while self.inbox_to - at >= 8:
            if self.inbox[at] == c"A":
                self.on_header(self.inbox[at + 4])
                at += 8
            elif self.inbox[at + 5] == 1:
                if self.inbox_to - at < read32(self.inbox + at):
                    break
                self.on_sasl(self.inbox + at)
                at += max(read32(self.inbox + at), <u32>8)
            elif take_frame(self.inbox + at, self.inbox + self.inbox_to, MAX_FRAME, &frame):
                at = frame.end - self.inbox
                if frame.code != 0 and self.on_frame(&frame):
                    return True
            else:
                break
        self.inbox_to -= at
        memmove(self.inbox, self.inbox + at, self.inbox_to)
        return False

    cdef int on_header(self, int protocol) except -1:
        if (protocol == 3) != (self.step == FOR_MECHANISMS):
            raise PeerGone(f"the peer answered with the header of protocol {protocol} in step {self.step}")
        return 0

    cdef int on_sasl(self, const u8 *at) except -1:
        """Take in a SASL frame: its code stands behind the frame's head and a descriptor of one byte. [5.3.3]"""
        cdef u32 size = read32(at)
        cdef int code = at[10] if size > 10 and at[8] == 0 and at[9] == 0x53 else 0
        if code == SASL_MECHANISMS and self.step == FOR_MECHANISMS:
            return self.say(self.frames.sasl_init, FOR_SASL_OUTCOME)
        if code != SASL_OUTCOME or self.step != FOR_SASL_OUTCOME:
            raise PeerGone(f"the peer sent an unexpected SASL frame 0x{code:02x}")
        # The list has at least the outcome's code as its first field, a ubyte.
        if size < 16 or at[11] != 0xC0 or at[14] != 0x50 or at[15] != 0:
            raise Unreachable("the peer refused the login")
        return self.say(self.frames.hello, FOR_CREDIT)

    cdef bint on_frame(self, Frame *frame) except -1:
        """Take in a frame; return True for the close that ends the cycle."""
        cdef Flow flow
        cdef Disposition disposition
        if frame.code == CLOSE and self.step == FOR_CLOSE:
            self.socket.close()
            self.done += 1
            return True
        if self.step == FOR_CLOSE:
            return False
        if frame.code in (DETACH, END, CLOSE):
            raise why_ended(frame.start[: frame.end - frame.start], "cycle")
        if frame.code == FLOW and self.step == FOR_CREDIT:
            read_flow(frame, &flow)
            if flow.has_handle and flow.credit > 0:
                self.send_message()
        elif frame.code == DISPOSITION and self.step == FOR_OUTCOME:
            read_disposition(frame, &disposition)
            if disposition.state or disposition.is_settled:
                self.accepted += disposition.state == ACCEPTED
                self.say(self.frames.close, FOR_CLOSE)
        return False

    cdef int send_message(self) except -1:
        cdef int at = TRANSFER_HEAD_BYTES + NUMBER_AT
        transfer = self.frames.transfer
        return self.say(transfer[:at] + self.number.to_bytes(4, "big") + transfer[at + 4 :], FOR_OUTCOME)

    def end(self):
        if self.socket is not None:
            self.socket.close()

    def is_connecting(self):
        return self.step == FOR_CONNECT


def run_cycles(str host, int port, list frames, u32 count, double stall_s):
    """Run ``count`` cycles, as many at once as ``frames`` has elements, and return the cycles and the seconds taken.

    Raise TimedOut if no cycle moves for ``stall_s`` s, or Unreachable, PeerGone, Malformed or BenchRefused.
    """
    family, _, _, _, address = sockets.getaddrinfo(host, port, type=sockets.SOCK_STREAM)[0]
    cdef list places = [Cycle(each) for each in frames]
    cdef dict by_fd = {}
    cdef u32 begun = 0, done = 0
    cdef double began_at = clock()
    cdef Cycle cycle
    polled = select.epoll()

    def begin(Cycle each):
        nonlocal begun
        fd = each.begin(family, address, begun)
        begun += 1
        by_fd[fd] = each
        polled.register(fd, select.EPOLLOUT)

    try:
        for cycle in places[:count]:
            begin(cycle)
        while done < count:
            ready = polled.poll(stall_s)
            if not ready:
                raise TimedOut(f"{done:,} of {count:,} cycles were done when nothing had moved for {stall_s:g} s")
            for fd, _ in ready:
                cycle = by_fd[fd]
                if cycle.is_connecting():
                    cycle.connected()
                    polled.modify(fd, select.EPOLLIN)
                elif cycle.hear():
                    # Closing the socket has removed the descriptor from the poll.
                    done += 1
                    if begun < count:
                        begin(cycle)
        return places, began_at, clock()
    finally:
        polled.close()
        for cycle in places:
            cycle.end()
