"""Which port may a test listen on, and where does it connect from?"""

import itertools
import random
import socket
from collections.abc import Iterator

# Below the range from which the kernel takes ports for outgoing connections: between here and the moment that a
# program listens nobody else gets the port by chance.
LOWEST, HIGHEST = 20_000, 32_000

_hosts = itertools.count((127 << 24) + (1 << 16) + 1)


def free_port() -> int:
    """A port that nobody listens on at the loopback address, and that no test run on this machine has given out."""
    return next(_free_ports())


def _free_ports() -> Iterator[int]:
    while True:
        port = random.randrange(LOWEST, HIGHEST)
        if not _is_in_use(port) and _claim(port):
            yield port


def _claim(port: int) -> bool:
    """Until this process ends: an abstract socket is a claim that all processes see and that none leaves behind."""
    with socket.socket(socket.AF_UNIX) as claim:
        try:
            claim.bind(f"\0amqpmesh-test-port-{port}")
        except OSError:
            return False
        claim.detach()
    return True


def _is_in_use(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def connect_from_new_host(port: int, timeout_s: float) -> socket.socket:
    """A connection to ``port`` from a loopback address of its own: in one log, the kernel's ports come again."""
    host = socket.inet_ntoa(next(_hosts).to_bytes(4, "big"))
    return socket.create_connection(("127.0.0.1", port), timeout_s, source_address=(host, 0))


def local_name(connected: socket.socket) -> str:
    """``host:port`` of our end, as the peer logs it."""
    host, port = connected.getsockname()
    return f"{host}:{port}"
