"""Bounds on the bytes of a connection in the kernel, out of our reach.

Our order of output (small messages before pieces of large messages, control before everything) holds only for bytes
that are still here: ahead lie the unsent bytes of this side and the unread bytes of the other side.
"""

from __future__ import annotations

import asyncio
import socket
import struct

UNSENT_BYTES = 65536
"""With a larger bound, control frames wait behind megabytes, and a slow trunk looks dead."""
RECEIVE_BUFFER_BYTES = 131_072
"""A near peer never has more under way; such a peer would fill Linux's own bound, 6 MB, and gain nothing."""
NEAR_S = 0.002

_NO_LINGER = struct.pack("ii", 1, 0)
_RTT = struct.Struct("=I")
_RTT_OFFSET = 68  # tcpi_rtt, in microseconds, of struct tcp_info: part of Linux's stable interface


def tune(transport: asyncio.Transport) -> int:
    """Return the number of the tuned socket. No bytes may wait in asyncio's buffer: waiting bytes stop the output."""
    transport.set_write_buffer_limits(high=0)
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
    if _is_near(sock):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    return int(sock.fileno())


def forget_unsent(transport: asyncio.Transport) -> None:
    """Drop unsent bytes at the close. Otherwise the kernel sends these for minutes, ahead of the news of the end."""
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)


def _is_near(sock: socket.socket) -> bool:
    """Judge by the handshake's round trip; a far peer needs the buffer that the kernel chooses."""
    if not hasattr(socket, "TCP_INFO"):
        return False
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RTT_OFFSET + _RTT.size)
    if len(info) < _RTT_OFFSET + _RTT.size:
        return False
    (rtt_us,) = _RTT.unpack_from(info, _RTT_OFFSET)
    return bool(0 < rtt_us < NEAR_S * 1e6)
