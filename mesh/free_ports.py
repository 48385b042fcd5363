"""Ports for what must disturb nothing that runs on this machine."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

# Below the range that Linux takes for outgoing connections.
PORTS = range(20000, 32000)


def free_ports() -> Iterator[int]:
    """That nobody listens on at the loopback address, and that nobody else is given as long as this process lives."""
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
    """Between here and the moment that something listens is time for others to be given it: an abstract socket is a
    claim that all processes see, and that none leaves behind."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0amqpmesh-port-{port}")
    except OSError:
        claim.close()
        return False
    claim.detach()
    return True
