"""A relay that passes bytes from one socket to another, to measure the least possible latency of a hop."""

from libc.errno cimport EINTR, errno

cdef extern from "<poll.h>" nogil:
    struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd *, unsigned long, int)
    const short POLLIN

cdef extern from "<sys/socket.h>" nogil:
    ssize_t c_send "send" (int, const void *, size_t, int)
    ssize_t c_recv "recv" (int, void *, size_t, int)
    const int MSG_NOSIGNAL

cdef enum:
    CHUNK_BYTES = 65536

cdef char chunk[CHUNK_BYTES]


def relay(int one, int other):
    """Pass bytes between two blocking sockets, both ways, until either side ends."""
    cdef pollfd polled[2]
    polled[0].fd, polled[1].fd = one, other
    polled[0].events = polled[1].events = POLLIN
    while True:
        if poll(polled, 2, -1) < 0:
            if errno != EINTR:
                return
            continue
        if polled[0].revents and not pass_on(one, other):
            return
        if polled[1].revents and not pass_on(other, one):
            return


cdef bint pass_on(int origin, int goal) noexcept:
    """Pass the bytes of one read from ``origin`` to ``goal``; return False if ``origin`` has ended or ``goal`` is
    gone.
    """
    cdef ssize_t size = c_recv(origin, chunk, CHUNK_BYTES, 0)
    cdef ssize_t sent, at = 0
    while at < size:
        sent = c_send(goal, chunk + at, size - at, MSG_NOSIGNAL)
        if sent < 0 and errno != EINTR:
            return False
        at += max(sent, <ssize_t>0)
    return size > 0
