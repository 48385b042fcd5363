"""A mesh in memory for observers of several hosts: messages are handed on at once, counted, and lost on demand."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from addressing.address import OBSERVERS
from mesh.client.errors import TimedOut, Unreachable
from mesh.watch.host_answers import HostAnswers
from mesh.watch.host_model import HostModel
from mesh.watch.mesh_view import MeshView
from mesh.watch.other_hosts import OtherHosts
from mesh.watch.troubles import host_troubles
from wire.message import Message

Handler = Callable[[Message], Awaitable[Message | None]]


class MemoryMesh:
    """``now_s``: the clock of all observers."""

    def __init__(self) -> None:
        self.links: list[MemoryLink] = []
        self.now_s = 100.0
        self.sent: list[dict[str, Any]] = []
        """What was sent, questions and answers, in order."""


class MemoryLink:
    """``is_up``: messages go and come. ``hangs``: no question is answered."""

    def __init__(self, mesh: MemoryMesh) -> None:
        self._mesh = mesh
        self.handlers: dict[str, Handler] = {}
        self.is_up, self.hangs, self.reason = True, False, "no router was tried yet"
        mesh.links.append(self)

    async def serve(self, address: str, handler: Handler) -> None:
        self.handlers[address] = handler

    async def ask(self, address: str, body: str, timeout_s: float) -> str:
        answer = await self._hand(Message(body, to=address), timeout_s)
        assert answer is not None
        return str(answer.body)

    async def send(self, message: Message) -> None:
        self._check()
        if message.to != OBSERVERS:
            await self._hand(message, 1.0)
            return
        self._mesh.sent.append(json.loads(message.body))
        for link in self._mesh.links:
            if link.is_up and OBSERVERS in link.handlers:
                answer = await link.handlers[OBSERVERS](message)
                if answer is not None:
                    await link.send(Message(answer.body, to=message.reply_to))

    async def _hand(self, message: Message, timeout_s: float) -> Message | None:
        self._check()
        self._mesh.sent.append(json.loads(message.body))
        for link in self._mesh.links:
            if message.to in link.handlers and link.is_up:
                if link.hangs:
                    raise TimedOut(f"no answer within {timeout_s:g} s")
                answer = await link.handlers[message.to](message)
                if answer is not None:
                    self._mesh.sent.append(json.loads(answer.body))
                return answer
        raise Unreachable(f"nobody answers at {message.to}")

    def _check(self) -> None:
        if not self.is_up:
            raise Unreachable(f"the observer has no connection to a router: {self.reason}")


class MemoryHost:
    """The observer of the host ``name`` with the nodes of ``model``; these and those of other hosts have ``roles``."""

    def __init__(self, mesh: MemoryMesh, name: str, model: HostModel, roles: dict[str, str]) -> None:
        self.name, self.mesh = name, mesh
        model.host = name
        for node in model.nodes.values():
            node.host = name
        answers = HostAnswers(model, troubles=lambda sees: host_troubles(model, sees)[0])
        self.link = MemoryLink(mesh)
        self.others = OtherHosts(self.link, name, answers, lambda: model.nodes, lambda: mesh.now_s)
        self.view = MeshView(model, answers, roles, self.others, lambda: False)

    async def join(self) -> None:
        """Say hello, as `OtherHosts.run` does first."""
        await self.serve()
        await self.others._say("hello")

    async def serve(self) -> None:
        await self.link.serve(OBSERVERS, self.others._on_said_to_all)
        await self.link.serve(f"{OBSERVERS}/{self.name}", self.others._on_asked)
