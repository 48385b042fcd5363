"""The other hosts of the mesh, as their observers say that they are there, and questions to these observers.

An observer says `here` when it has connected to the mesh, when a node is new on its host, and each ANNOUNCE_S; and
`bye` when it stops. Everything else is sent only when somebody asks. Messages to all observers, as JSON:

    {"op": "hello", "host", "nodes"}      `here`, and each observer shall answer with its own `here` to reply-to
    {"op": "here", "host", "nodes"}       the host has these nodes
    {"op": "bye", "host"}                 the observer stops in order
    {"op": "summary"}                     the answer to reply-to is that of `mesh.watch.host_answers`, with the host

Questions to one observer are those of `mesh.watch.host_answers`, and of `mesh.watch.host_changes`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from addressing.address import OBSERVER_PREFIX, OBSERVERS
from mesh.client.errors import MeshError, TimedOut, Unreachable
from mesh.watch.mesh_pages import MissingHost, Request
from mesh.watch.node_summary import NodeSummary, from_list, never_heard, unknown
from recording.entities import MODEL_VERSION
from wire.message import Message

if TYPE_CHECKING:
    from mesh.watch.host_answers import HostAnswers

ANNOUNCE_S: Final = 30.0
ANSWER_S: Final = 2.0
"""A host that has not answered a question by then is missing from the answer."""
SPARED_S: Final = 3.0
"""A host that did not answer in time is not waited for so long: pages would take ANSWER_S each time."""
SUMMARY_S: Final = 0.9
"""A summary younger than this is not asked for again, whoever looks."""
FORGOTTEN_S: Final = 24 * 3600.0
MAX_HOSTS: Final = 1000
_LOOK_S: Final = 0.5

HostHandler = Callable[[Request], Awaitable[Mapping[str, Any]]]
"""Answers a question of another observer; raises WriteRefused, or another error for one of another version."""


class AskingLink(Protocol):
    """What `mesh.watch.mesh_link.MeshLink` is for this module."""

    reason: str

    @property
    def is_up(self) -> bool: ...
    async def serve(self, address: str, handler: Callable[[Message], Any]) -> None: ...
    async def ask(self, address: str, body: str, timeout_s: float) -> str: ...
    async def send(self, message: Message) -> None: ...


class OtherHost:
    """A host with an observer of its own. ``why``: the reason why the observer did not answer last; None if it did."""

    def __init__(self, host: str, link: AskingLink, clock: Callable[[], float]) -> None:
        self.host = host
        self.nodes: tuple[str, ...] = ()
        self.heard_at = clock()
        self.why: str | None = None
        self._link, self._clock = link, clock
        self._late_at: float | None = None
        self._is_stopped = False
        self._told: dict[str, NodeSummary] = {}
        self._told_at: float | None = None
        self._asking: asyncio.Task[None] | None = None

    @property
    def age_s(self) -> float:
        """Time since anything was heard of the host."""
        return max(0.0, self._clock() - self.heard_at)

    def on_heard(self) -> None:
        self.heard_at = self._clock()
        self.why = self._late_at = None
        self._is_stopped = False

    def on_stopped(self) -> None:
        self.why, self._is_stopped = "its observer was stopped", True

    async def ask(self, request: Request) -> dict[str, Any]:
        """Return the answer. Raises MeshError; at once if the observer was stopped, or was late a moment ago."""
        if self.why is not None and self._is_spared:
            raise Unreachable(self.why)
        return await self._ask(request)

    async def _ask(self, request: Request) -> dict[str, Any]:
        try:
            answer = await self._link.ask(OBSERVER_PREFIX + self.host, json.dumps(request), ANSWER_S)
            found: dict[str, Any] = json.loads(answer)
            if "error" in found:
                raise Unreachable(str(found["error"]))
        except ValueError:
            raise Unreachable("the answer of the observer is not valid JSON") from None
        except TimedOut:
            self.why = f"its observer did not answer within {ANSWER_S:g} s"
            self._late_at = self._clock()
            raise Unreachable(self.why) from None
        except MeshError as error:
            self.why = error.message
            raise
        self.on_heard()
        return found

    def missing(self, why: str) -> MissingHost:
        return MissingHost(self.host, self.nodes, round(self.age_s, 3), why)

    # Summaries
    def is_due(self) -> bool:
        """Tell whether a summary should be asked for now."""
        is_fresh = self._told_at is not None and self._clock() - self._told_at < SUMMARY_S
        return not is_fresh and not self._is_spared

    @property
    def _is_spared(self) -> bool:
        return self._is_stopped or (self._late_at is not None and self._clock() - self._late_at < SPARED_S)

    def start_asking(self) -> asyncio.Task[None]:
        """Ask for a summary; all who want one share the answer."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._take_summary())
        return self._asking

    async def _take_summary(self) -> None:
        with suppress(MeshError):
            found = await self._ask({"op": "summary"})
            try:
                if found["model"] != MODEL_VERSION:
                    self.why = f"its observer tells version {found['model']} of the model, expected {MODEL_VERSION}"
                    return
                told = [from_list(each, found["names"]) for each in found["nodes"]]
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                self.why = f"its observer's summary is not one of this version: {error!r}"
                return
            self._told, self._told_at = {each.name: each for each in told}, self._clock()
            self.nodes = tuple(self._told)

    def summaries(self) -> Iterable[NodeSummary]:
        """Yield what is known of the host's nodes, each with its age."""
        for name in self.nodes:
            told = self._told.get(name)
            if told is None or self._told_at is None:
                found = never_heard(name, "", self.why or "its observer has not told of it yet")
                found.row["age_s"] = self.age_s
                found.row["host"] = self.host
                yield found
                continue
            later_s = self._clock() - self._told_at
            if self.why is not None:
                yield unknown(told, self.why, later_s)
            else:
                yield told.later(later_s)


class OtherHosts:
    """The other hosts that were heard. ``own``: the id of this host; ``nodes`` returns the names of its nodes."""

    def __init__(
        self,
        link: AskingLink,
        own: str,
        answers: HostAnswers,
        nodes: Callable[[], Iterable[str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.own = own
        self.link = link
        self._answers, self._nodes, self._clock = answers, nodes, clock
        self._hosts: dict[str, OtherHost] = {}
        self._handlers: Mapping[str, HostHandler] = {}

    def answer_by(self, handlers: Mapping[str, HostHandler]) -> None:
        """Answer questions with an `op` of ``handlers`` by the handler, in place of `mesh.watch.host_answers`."""
        self._handlers = handlers

    @property
    def hosts(self) -> list[OtherHost]:
        return list(self._hosts.values())

    async def run(self, stopping: asyncio.Event) -> None:
        """Answer other observers, and say that this one is here, until ``stopping`` is set."""
        await self.link.serve(OBSERVERS, self._on_said_to_all)
        await self.link.serve(OBSERVER_PREFIX + self.own, self._on_asked)
        was_up, said_at, said = False, 0.0, frozenset[str]()
        while not stopping.is_set():
            is_up, nodes = self.link.is_up, frozenset(self._nodes())
            if is_up and (not was_up or nodes != said or self._clock() - said_at >= ANNOUNCE_S):
                if await self._say("here" if was_up else "hello"):
                    said_at, said = self._clock(), nodes
                else:
                    is_up = False
            was_up = is_up
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await stopping.wait()

    async def leave(self) -> None:
        """Say that the observer stops; other observers then need not find out."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await self._say("bye")

    async def _say(self, op: str) -> bool:
        with suppress(MeshError):
            text = json.dumps({"op": op, "host": self.own, "nodes": sorted(self._nodes())})
            await self.link.send(Message(text, to=OBSERVERS, reply_to=OBSERVER_PREFIX + self.own))
            return True
        return False

    async def _on_said_to_all(self, message: Message) -> Message | None:
        """Take what was said to all observers. An answer goes to whoever said hello, or asked for a summary."""
        said = _map_in(message)
        if said.get("op") == "summary":
            return Message(json.dumps({**self._answers.summary(), "host": self.own}))
        if said.get("host") != self.own and self._hear(said) and said["op"] == "hello":
            return Message(json.dumps({"op": "here", "host": self.own, "nodes": sorted(self._nodes())}))
        return None

    async def _on_asked(self, message: Message) -> Message | None:
        asked = _map_in(message)
        if self._hear(asked):
            return None
        handler = self._handlers.get(str(asked.get("op")))
        if handler is None:
            return Message(self._answers.answer_text(str(message.body)))
        try:
            found = await handler(asked)
        except (ValueError, KeyError, TypeError) as error:
            found = {"error": f"the request {asked['op']} is not one of this version: {error!r}"}
        return Message(json.dumps(found, separators=(",", ":")))

    def _hear(self, said: dict[str, Any]) -> bool:
        """Note what another host said of itself; return False if it is something else."""
        name, nodes = said.get("host"), said.get("nodes")
        if said.get("op") not in ("hello", "here", "bye") or not isinstance(name, str) or not isinstance(nodes, list):
            return False
        host = self._hosts.get(name)
        if host is None:
            if len(self._hosts) >= MAX_HOSTS:
                return True
            host = self._hosts[name] = OtherHost(name, self.link, self._clock)
        host.on_heard()
        host.nodes = tuple(str(each) for each in nodes)
        if said["op"] == "bye":
            host.on_stopped()
        self._forget()
        return True

    def _forget(self) -> None:
        """Forget hosts that do not answer, once all their nodes are on hosts that do, or after FORGOTTEN_S."""
        told = {*self._nodes(), *(name for each in self.hosts if each.why is None for name in each.nodes)}
        for each in self.hosts:
            if each.why is not None and (told.issuperset(each.nodes) or each.age_s >= FORGOTTEN_S):
                del self._hosts[each.host]


def _map_in(message: Message) -> dict[str, Any]:
    with suppress(ValueError, TypeError):
        found = json.loads(message.body)
        if isinstance(found, dict):
            return found
    return {}
