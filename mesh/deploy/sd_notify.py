"""Tells systemd the state of a node (`Type=notify`); does nothing without NOTIFY_SOCKET in the environment.

Protocol, sd_notify(3): one datagram to the Unix socket that NOTIFY_SOCKET names; a first `@` stands for the abstract
namespace.
"""

from __future__ import annotations

import os
import socket
from typing import Final

SOCKET: Final = "NOTIFY_SOCKET"


def notify(*states: str) -> bool:
    """Send systemd states such as `READY=1`, `STOPPING=1`, `STATUS=...` in one datagram; return False if NOTIFY_SOCKET
    is not set, or the datagram could not be sent.
    """
    address = os.environ.get(SOCKET, "")
    if not address.startswith(("/", "@")):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as datagram:
        datagram.settimeout(1.0)
        try:
            datagram.sendto("\n".join(states).encode(), "\0" + address[1:] if address[0] == "@" else address)
        except OSError:
            return False
    return True
