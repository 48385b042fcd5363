"""The path of a multicast breaks and is whole again before its ingress looks: do consumers get copies afterwards?"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line
from mesh_tests.sim.test_fallback import body, body_of
from wire.delivery import ACCEPTED

LARGE_BYTES = 150_000


def whole(text: str, is_large: bool) -> bytes:
    data = text.encode().ljust(LARGE_BYTES if is_large else 1, b"x")
    return b"\x00\x53\x75\xb0" + len(data).to_bytes(4, "big") + data


@pytest.mark.parametrize("is_settled", [False, True], ids=["unsettled", "settled"])
def test_while_nobody_sends(is_settled: bool):
    """The branch is kept for a while, in case that somebody comes back."""
    mesh = line()
    receiver = mesh.client("r3").receiver("prices", credit=100)
    producer = mesh.client("r1")
    sender = producer.sender("prices")
    mesh.send(sender, body("before"), settled=is_settled)
    mesh.run_until(lambda: len(receiver.messages) == 1)
    mesh.cut(producer.pipe)
    mesh.run(1)
    mesh.cut_trunk("r2", "r3")
    mesh.run(1)
    mesh.link("r2", "r3")
    mesh.run(1)
    sender = mesh.client("r1", "again").sender("prices")
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.send(sender, body("after"), settled=is_settled)
    mesh.run_until(lambda: [body_of(message) for message in receiver.messages] == [b"before", b"after"], 3)


@pytest.mark.parametrize("is_large", [False, True], ids=["small", "large"])
def test_while_somebody_sends(monkeypatch: pytest.MonkeyPatch, is_large: bool):
    """The ingress reads of the loss and of the end of it at once."""
    mesh = line()
    receiver = mesh.client("r3").receiver("prices", credit=1000)
    near = mesh.client("r2").receiver("prices", credit=1000)
    sender = mesh.client("r1").sender("prices")
    mesh.send(sender, whole("before", is_large))
    mesh.run_until(lambda: len(receiver.messages) == 1 and len(near.messages) == 1)
    _read_at_once(monkeypatch, mesh, lambda: (mesh.cut_trunk("r2", "r3"), mesh.link("r2", "r3"))[0])
    for n in range(40):
        if sender.link.credit > 0:
            mesh.send(sender, whole(str(n), is_large))
        mesh.run(0.1)
    seen = len(receiver.messages)
    mesh.send(sender, whole("after", is_large))
    mesh.run_until(lambda: len(receiver.messages) == seen + 1, 3)
    mesh.run(2)
    assert sender.outcomes[sender.count] == ACCEPTED


def _read_at_once(monkeypatch: pytest.MonkeyPatch, mesh: SimMesh, happens: Callable[[], None]) -> None:
    """All that it has to tell r1 comes there in one input."""
    r1 = mesh.routers["r1"]
    settle = r1._addresses.settle
    monkeypatch.setattr(r1._addresses, "settle", lambda: None)
    happens()
    mesh.run(0.2)
    monkeypatch.setattr(r1._addresses, "settle", settle)
    r1._addresses.settle()
