"""Finds free loopback ports for a mesh that a drill, benchmark or test runs beside other programs on this machine."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

# These ports are below the range from which Linux by default takes the local ports of outgoing connections: no outgoing
# connection takes one of them meanwhile.
PORTS = range(20000, 32000)


def free_ports() -> Iterator[int]:
    """Yield free ports of 127.0.0.1, in random order, each claimed for this process: while this process lives, no other
    call, here or in another process, yields the same port.
    """
    for port in random.sample(PORTS, len(PORTS)):
        # The claim comes first: to look whether a port is in use takes the port for a moment, in which a node that has
        # the claim, and starts again, would find its port in use.
        if _claim(port) and not _is_in_use(port):
            yield port


def _is_in_use(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _claim(port: int) -> bool:
    """Claim ``port`` before a program listens there; False if another call, in this or another process, has the claim.

    The claim is an abstract socket name: only one socket can have the name, and the kernel frees it with this process.
    """
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0amqpmesh-port-{port}")
    except OSError:
        claim.close()
        return False
    claim.detach()
    return True
