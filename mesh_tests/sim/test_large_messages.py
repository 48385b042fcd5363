"""Does a message of megabytes go on without a stall, whatever frames and windows producer, router and consumer have?

In virtual time nothing takes long but waiting for a window that does not open: 8 MiB take some hundred turns of 1 ms.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from proton import Message

from mesh.simulation.sim_mesh import SimMesh
from router.settings import ListenerSettings
from wire.delivery import ACCEPTED
from wire.endpoint import EndpointSettings

LARGE = Message(body=b"x" * (8 << 20)).encode()


def mesh_of(monkeypatch: pytest.MonkeyPatch, folder: Path, frame_bytes: int, window_frames: int) -> SimMesh:
    """r1 - r2 with a broker at r2. A listener has windows of so many frames."""

    def listener(self: SimMesh, name: str) -> ListenerSettings:
        return ListenerSettings(EndpointSettings(name, max_frame_bytes=frame_bytes, window_frames=window_frames))

    monkeypatch.setattr(SimMesh, "_listener", listener)
    mesh = SimMesh(
        {
            "mesh": "large",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {}},
            "brokers": {"b1": {"data": "b1", "routers": ["r2"]}},
            "addresses": {"orders": {"type": "queue", "broker": "b1"}, "rpc": "anycast"},
        },
        folder,
    )
    mesh.converge()
    mesh.run_until(lambda: all(each.is_up for each in mesh.routers["r2"].snapshot().brokers))
    mesh.run(0.2)
    return mesh


@pytest.mark.parametrize(("address", "router"), [("orders", "r1"), ("rpc", "r2")])
@pytest.mark.parametrize(
    ("frame_bytes", "window_frames", "takes_bytes", "takes_frames"),
    [
        (4096, 1024, 1 << 20, 2),
        (32768, 128, 16384, 256),
        (1 << 20, 4, 32768, 8),
        (16 << 20, 4, 1 << 20, 2),
    ],
)
def test_a_large_message_is_never_stuck(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    frame_bytes: int,
    window_frames: int,
    takes_bytes: int,
    takes_frames: int,
    router: str,
    address: str,
):
    mesh = mesh_of(monkeypatch, tmp_path, frame_bytes, window_frames)
    receiver = mesh.client("r1", "c", max_frame_bytes=takes_bytes, window_frames=takes_frames).receiver(address)
    sender = mesh.client(router, "p").sender(address)
    mesh.send(sender, LARGE)
    mesh.run_until(lambda: not sender.open, 10)
    mesh.run_until(lambda: bool(receiver.messages), 10)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    assert receiver.messages == [LARGE]
