"""What can happen to a host, and be over again?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from mesh_tests.containers.host import Host

Loss = Callable[[Host], AbstractContextManager[None]]


@contextmanager
def paused(host: Host) -> Iterator[None]:
    """It hangs: its connections stay, and nothing comes over them."""
    host.pause()
    try:
        yield
    finally:
        host.unpause()


@contextmanager
def killed(host: Host) -> Iterator[None]:
    """A crash, and a start on the same files."""
    host.kill()
    try:
        yield
    finally:
        host.start()


@contextmanager
def disconnected(host: Host) -> Iterator[None]:
    """Its cable is pulled out; it runs on by itself."""
    host.disconnect()
    try:
        yield
    finally:
        host.reconnect()
