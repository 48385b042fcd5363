"""Finds free ports for a mesh that must not disturb other programs on this machine."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

# These ports are below the range that Linux uses for outgoing connections.
PORTS = range(20000, 32000)


def free_ports() -> Iterator[int]:
    """Yield free ports of the loopback address. No other caller gets a yielded port while this process lives."""
    for port in random.sample(PORTS, len(PORTS)):
        if not _is_in_use(port) and _claim(port):
            yield port


def _is_in_use(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _claim(port: int) -> bool:
    """Claim ``port`` among all processes before a program listens there. False if another process has the claim.

    The claim is an abstract socket: every process sees the claim, and the kernel drops the claim with this process.
    """
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0amqpmesh-port-{port}")
    except OSError:
        claim.close()
        return False
    claim.detach()
    return True
