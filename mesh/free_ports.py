"""Ports for what must disturb nothing that runs on this machine."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

# Below the range that Linux takes for outgoing connections.
PORTS = range(20000, 32000)


def free_ports() -> Iterator[int]:
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        yield port
