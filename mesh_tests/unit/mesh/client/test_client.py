"""A client whose peer takes its time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mesh.client.client import Client
from mesh.client.errors import TimedOut
from mesh.client.server import CONNECTOR
from mesh_tests.unit.wire.pipes import Recorder
from wire.endpoint import Endpoint, EndpointSettings, Peer
from wire.events import LinkDetached, SessionBegun


class SlowPeer:
    """It opens, begins sessions, and answers no attach."""

    def __init__(self, client: Client) -> None:
        self.endpoint = Endpoint(EndpointSettings("peer"))
        self.endpoint.open()
        self.events: list[Any] = []
        self._client = client
        self._other = client.on_connected(CONNECTOR, Peer(), 0.0)
        client.flush = self.run

    def run(self) -> None:
        moved = True
        while moved:
            moved = False
            while chunk := self._other.output():
                self.endpoint.receive(chunk)
                moved = True
            for event in self.endpoint.drain(Recorder()):
                self.events.append(event)
                if isinstance(event, SessionBegun):
                    event.session.open()
            while chunk := self.endpoint.output():
                self._other.receive(chunk)
                self._client.on_input(self._other, 0.0)
                moved = True


@pytest.mark.parametrize("kind", ["sender", "receiver"])
@pytest.mark.parametrize("is_given_up", [False, True])
def test_a_link_that_nobody_waits_for_any_more_is_closed(kind: str, is_given_up: bool):
    async def attach() -> SlowPeer:
        client = Client()
        peer = SlowPeer(client)
        peer.run()
        await client.wait_open()
        if is_given_up:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await getattr(client, kind)("prices")
        else:
            with pytest.raises(TimedOut, match="no answer to the attach"):
                await getattr(client, kind)("prices", timeout_s=0.01)
        peer.run()
        return peer

    peer = asyncio.run(attach())
    assert [event for event in peer.events if isinstance(event, LinkDetached)]
