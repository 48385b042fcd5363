"""Socket options that bound the bytes of a connection in the kernel's buffers, where their order is fixed.

Our order of output (control before everything, small messages before pieces of large messages) holds only for bytes
that this process has not written yet: unsent bytes in this kernel, and unread bytes at the peer, go before.
"""

from __future__ import annotations

import asyncio
import socket
import struct

UNSENT_BYTES = 65536
"""Most unsent bytes in the kernel: more would make control frames wait so long that a slow connection looks dead."""
RECEIVE_BUFFER_BYTES = 131_072
"""Receive buffer for a near peer, which never needs more under way; Linux's own bound of 6 MB would only fill up."""
NEAR_S = 0.002

_NO_LINGER = struct.pack("ii", 1, 0)
_RTT = struct.Struct("=I")
# Offset of the field tcpi_rtt (microseconds) in struct tcp_info, which is part of Linux's stable interface.
_RTT_OFFSET = 68


def tune(transport: asyncio.Transport) -> int:
    """Set TCP options and buffer limits on the socket of ``transport``; return the number of the socket.

    asyncio's buffer gets the limit 0, so that asyncio pauses our output as soon as a byte waits there.
    """
    transport.set_write_buffer_limits(high=0)
    view = transport.get_extra_info("socket")
    # uvloop's view of a socket makes a socket object anew for each call, so one object serves all calls here.
    sock = socket.socket(view.family, view.type, view.proto, view.fileno())
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        if _is_near(sock):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    finally:
        number = sock.detach()
    return number


def forget_unsent(transport: asyncio.Transport) -> None:
    """Have the close of the transport's socket drop unsent bytes, which the kernel would go on sending for minutes."""
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)


def _is_near(sock: socket.socket) -> bool:
    """Say whether the round trip to the peer of ``sock`` is known to take less than 2 ms, as TCP measured it.

    The socket of a farther peer keeps the receive buffer that the kernel chooses.
    """
    if not hasattr(socket, "TCP_INFO"):
        return False
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RTT_OFFSET + _RTT.size)
    if len(info) < _RTT_OFFSET + _RTT.size:
        return False
    (rtt_us,) = _RTT.unpack_from(info, _RTT_OFFSET)
    return bool(0 < rtt_us < NEAR_S * 1e6)
