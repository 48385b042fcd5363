"""How does a test give each host of a mesh a network of its own, on one machine, and cut a host off?"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_BRIDGE = "bridge"


def has_namespaces() -> bool:
    """Only root makes network namespaces that other programs enter by name."""
    if os.geteuid() != 0:
        return False
    name = f"amqm-{os.getpid()}-try"
    try:
        _ip("netns", "add", name)
        _ip("netns", "del", name)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


class HostNetwork:
    """A network namespace for each host, with the address `10.77.0.N`; all are at one bridge, in a namespace, too."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hub = f"amqm-{os.getpid()}-hub"
        self.addresses = {host: f"10.77.0.{number}" for number, host in enumerate(hosts, 1)}
        self._names = {host: f"amqm-{os.getpid()}-{host}" for host in hosts}
        try:
            for name in (self._hub, *self._names.values()):
                _ip("netns", "add", name)
            _ip("-n", self._hub, "link", "add", _BRIDGE, "type", "bridge")
            _ip("-n", self._hub, "link", "set", _BRIDGE, "up")
            for host, name in self._names.items():
                ends = ("eth0", "netns", name, "type", "veth", "peer", "name", host, "netns", self._hub)
                _ip("link", "add", *ends)
                _ip("-n", self._hub, "link", "set", host, "master", _BRIDGE, "up")
                _ip("-n", name, "address", "add", f"{self.addresses[host]}/24", "dev", "eth0")
                for device in ("lo", "eth0"):
                    _ip("-n", name, "link", "set", device, "up")
        except BaseException:
            self.close()
            raise

    def prefix(self, host: str) -> list[str]:
        """The beginning of a command that runs on ``host``; the process is that of the command itself."""
        return ["ip", "netns", "exec", self._names[host]]

    @contextmanager
    def entered(self, host: str) -> Iterator[None]:
        """Let sockets that this thread makes be those of ``host``."""
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        other = os.open(Path("/run/netns") / self._names[host], os.O_RDONLY | os.O_CLOEXEC)
        try:
            _enter(other)
            try:
                yield
            finally:
                _enter(own)
        finally:
            os.close(other)
            os.close(own)

    def set_cut(self, host: str, is_cut: bool) -> None:
        """Have no packet come to ``host`` or from it, without a word to either end; or end that."""
        _ip("-n", self._hub, "link", "set", host, "down" if is_cut else "up")

    def close(self) -> None:
        for name in (*self._names.values(), self._hub):
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "del", name)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def _enter(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
