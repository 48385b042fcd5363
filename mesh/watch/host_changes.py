"""Changes of nodes of other hosts: the observer that was asked carries each to the observer of the node's host.

Two questions, as JSON, to the observer of that host; operators and nodes only can send there:

    {"op": "offer", "node"}             {"ticket"}: the node runs there, and a change of it is taken for TICKET_S
    {"op": "change", "ticket", ...}     {"status", "content", "outcome"}: the change was judged there, and made or not

A question may lie at a router until the observer takes it. A change without a ticket that is still good is not made,
by the clock of the host that gave the ticket. So whatever goes wrong before the ticket has changed nothing, and what
was answered as unknown is not made minutes later.

`browse`, `decisions`, `events` and `audit` only look, and need no ticket:

    {"op": "browse", "id", "arguments"}, {"op": "decisions", "id", "after"}
    {"op": "events", "parameters"}, {"op": "audit", "parameters"}
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from addressing.address import OBSERVER_PREFIX
from addressing.operator_rights import OWNER
from mesh.client.errors import MeshError
from mesh.watch.access import LoginKind, Requester
from mesh.watch.idempotency import KeptAnswer
from mesh.watch.write_request import WriteRefused

if TYPE_CHECKING:
    from addressing.operator_rights import Operator, OperatorRights
    from mesh.watch.mesh_pages import Request
    from mesh.watch.other_hosts import OtherHost, OtherHosts

TICKET_S: Final = 10.0
MAX_TICKETS: Final = 1000
CHANGE_S: Final = 60.0
"""How long the observer that was asked waits for the end of a change at another host."""
LOOK_S: Final = 10.0
"""How long it waits for messages, events or the audit of another host."""


class ChangeTickets:
    """The tickets of this host that were given and not used. ``clock`` returns seconds that are never set back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._given: dict[str, float] = {}

    def give(self) -> str:
        now = self._clock()
        self._given = {ticket: until for ticket, until in self._given.items() if until > now}
        if len(self._given) >= MAX_TICKETS:
            del self._given[next(iter(self._given))]
        ticket = secrets.token_hex(8)
        self._given[ticket] = now + TICKET_S
        return ticket

    def take(self, ticket: Any) -> bool:
        """Use a ticket; return False if it was not given, was used, or is too old."""
        until = self._given.pop(ticket, None) if isinstance(ticket, str) else None
        return until is not None and self._clock() < until


@dataclass(frozen=True, slots=True)
class CarriedAnswer:
    """``host``: the id of the host that has answered. ``outcome``: as in the audit there."""

    host: str
    answer: KeptAnswer
    outcome: str


class HostChanges:
    """Carries changes to the other hosts that ``others`` has."""

    def __init__(self, others: OtherHosts) -> None:
        self._others = others

    @property
    def own(self) -> str:
        return self._others.own

    def has(self, node: str) -> bool:
        """Tell whether an observer of another host has told of ``node``."""
        return any(node in host.nodes for host in self._others.hosts)

    def one_of_each(self, nodes: Iterable[str]) -> list[str]:
        """Return one node of ``nodes`` for each other host on which at least one of these nodes runs."""
        wanted = set(nodes)
        found = (next((name for name in host.nodes if name in wanted), None) for host in self._others.hosts)
        return sorted({name for name in found if name is not None})

    async def carry(self, node: str, change: Mapping[str, Any]) -> CarriedAnswer:
        """Have ``change`` made by the observer of the host where ``node`` runs, and return the answer.

        Raises WriteRefused with 502 if no observer takes the change: then nothing was changed. If the answer does not
        come, WriteRefused with 504 is uncertain, and the same request with the same key tells what became of it.
        """
        host, ticket = await self._offered(node)
        request = {"op": "change", **change, "ticket": ticket, "asked_at": self.own}
        try:
            found = json.loads(await self._others.link.ask(OBSERVER_PREFIX + host.host, json.dumps(request), CHANGE_S))
            answer = KeptAnswer(int(found["status"]), dict(found["content"]))
            return CarriedAnswer(host.host, answer, str(found["outcome"]))
        except MeshError as error:
            why = error.message
        except (ValueError, KeyError, TypeError) as error:
            why = f"the answer of its observer is not one of this version: {error!r}"
        raise WriteRefused(
            504, f"unknown whether the change of {node} on host {host.host} was made: {why}. Ask again with the same "
            "key: a change that was made is answered again, and not made again", is_uncertain=True,
        )  # fmt: skip

    async def _offered(self, node: str) -> tuple[OtherHost, str]:
        why: list[str] = []
        for host in self._those_with(node):
            try:
                found = await host.ask({"op": "offer", "node": node})
                return host, str(found["ticket"])
            except MeshError as error:
                why.append(f"host {host.host}: {error.message}")
            except (KeyError, TypeError):
                why.append(f"host {host.host}: the answer of its observer is not one of this version")
        raise WriteRefused(
            502, f"nothing was changed: no observer takes changes of {node}. {'; '.join(why)}. Start the observer by "
            "`amqpmesh watch` on the host of the node",
        )  # fmt: skip

    async def look(self, node: str, request: Request) -> KeptAnswer:
        """Return the answer to a request that changes nothing. Raises WriteRefused, 502 if there is no answer."""
        why = "no observer of another host has told of it"
        for host in self._those_with(node):
            try:
                return await self.look_at(host.host, request)
            except WriteRefused as refused:
                why = refused.sentence
        raise WriteRefused(502, f"nobody can tell of {node} now. {why}")

    async def look_at(self, host: str, request: Request) -> KeptAnswer:
        """As `look`, of the host with an id."""
        try:
            found = json.loads(await self._others.link.ask(OBSERVER_PREFIX + host, json.dumps(request), LOOK_S))
            return KeptAnswer(int(found["status"]), dict(found["content"]))
        except MeshError as error:
            why = error.message
        except (ValueError, KeyError, TypeError) as error:
            why = f"the answer of its observer is not one of this version: {error!r}"
        raise WriteRefused(502, f"host {host}: {why}")

    @property
    def nodes(self) -> dict[str, frozenset[str]]:
        """By id of each other host, the nodes that its observer has told of."""
        return {host.host: frozenset(host.nodes) for host in self._others.hosts}

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(host.host for host in self._others.hosts)

    def _those_with(self, node: str) -> Iterable[OtherHost]:
        """Return the hosts that have told of a node, which may have moved; those that answered last come first."""
        return sorted(
            (host for host in self._others.hosts if node in host.nodes), key=lambda host: host.why is not None
        )


def named(requester: Requester) -> dict[str, Any]:
    """Return how a request to another host says who asks."""
    operator = requester.operator
    return {"who": operator.name, "is_owner": operator.is_owner, "login": requester.login.value, "from": requester.peer}


def requester_in(request: Mapping[str, Any], rights: OperatorRights) -> Requester:
    """Return who asks for a request of another host; the rights are those that this host knows."""
    operator: Operator = OWNER if request["is_owner"] is True else rights.operator(str(request["who"]))
    return Requester(operator, LoginKind(request["login"]), str(request["from"]))
