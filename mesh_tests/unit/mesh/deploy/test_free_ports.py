"""Ports for a copy of a mesh: nobody else is given them before it listens."""

from __future__ import annotations

import random
import socket
import subprocess
import sys

import pytest

from mesh.deploy import free_ports as module
from mesh.deploy.free_ports import free_ports

FEW = 3
ASK = f"""
from mesh.deploy import free_ports as module
module.PORTS = range({{first}}, {{first}} + {FEW})
print(*module.free_ports(), flush=True)
input()
"""


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> int:
    """Of a few ports that nothing listens on."""
    found = random.randrange(30_000, 32_000 - FEW)
    monkeypatch.setattr(module, "PORTS", range(found, found + FEW))
    return found


def test_who_asks_at_the_same_time_is_given_other_ports_as_long_as_the_first_one_lives(first: int) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", ASK.format(first=first)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout
    theirs = {int(port) for port in other.stdout.readline().split()}
    assert theirs
    assert not theirs & set(free_ports())
    other.communicate("\n")
    assert theirs <= set(free_ports())


def test_a_port_that_something_listens_on_is_not_given(first: int) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", first))
        listening.listen()
        assert first not in set(free_ports())
