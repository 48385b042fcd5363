"""How do two hosts stop hearing each other, with everybody else as before and nobody told?"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from mesh_tests.containers.host import Host
from mesh_tests.containers.owner import LABEL, is_gone, this_process

# The engine's own rules leave this chain to others, and look at it first.
CHAIN = "DOCKER-USER"


def can_partition() -> bool:
    """May this process change the rules of the network that the engine uses?"""
    try:
        return _iptables("-S", CHAIN, is_checked=False).returncode == 0
    except FileNotFoundError:
        return False


@contextmanager
def silenced(*pairs: tuple[Host, Host]) -> Iterator[None]:
    """Nothing that the first host of a pair sends to the second gets there."""
    rules = [_rule(sender, receiver) for sender, receiver in pairs]
    for rule in rules:
        _iptables("-I", *rule)
    try:
        yield
    finally:
        for rule in rules:
            _iptables("-D", *rule)


def remove_left_rules() -> None:
    """Those of runs that were killed."""
    for line in _iptables("-S", CHAIN).stdout.splitlines():
        words = shlex.split(line)
        owners = [word.removeprefix(f"{LABEL}=") for word in words if word.startswith(f"{LABEL}=")]
        if any(map(is_gone, owners)):
            _iptables("-D", *words[1:])


def _rule(sender: Host, receiver: Host) -> list[str]:
    comment = f"{LABEL}={this_process()}"
    return [CHAIN, "-s", sender.ip, "-d", receiver.ip, "-m", "comment", "--comment", comment, "-j", "DROP"]


def _iptables(*arguments: str, is_checked: bool = True) -> subprocess.CompletedProcess[str]:
    # -w: several workers change the rules.
    return subprocess.run(["iptables", "-w", *arguments], capture_output=True, text=True, check=is_checked)
