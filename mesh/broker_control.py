"""How are the queues of embedded brokers looked after? Requests to the control address of each that is meant."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from addressing.address import CONTROL_ADDRESS
from addressing.book import AddressBook
from addressing.topology import Topology
from mesh.connect import connected
from mesh.exit_codes import ExitCode
from mesh.failure import CommandFailed, TimedOut
from mesh.operator import broker_server
from wire.delivery import ACCEPTED, Kind
from wire.message import Message, decode, encode

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 60.0
ANSWER_CREDIT = 10
FIX = "`amqpmesh status` shows what runs."
NOT_MADE_YET = "not-made-yet"
"""So a broker says that it keeps the queue, and has none of it."""

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Site:
    """Where a queue or topic is: ``address`` is its name at that broker."""

    broker: str
    address: str


@dataclass(slots=True)
class Found:
    """What the brokers that were asked have said, and why others have not."""

    answers: list[tuple[Site, list[Answer]]] = field(default_factory=list)
    failures: list[CommandFailed] = field(default_factory=list)
    unmade: list[tuple[Site, CommandFailed]] = field(default_factory=list)
    """Brokers that have not made the queue yet, while others have: that is no failure."""

    def raise_failures(self, *, are_all: bool = False) -> None:
        """With ``are_all``: only when there is nothing else to tell."""
        if self.failures and not (are_all and self.answers):
            first = self.failures[0]
            said = "; ".join(failure.message for failure in self.failures)
            raise CommandFailed(said, exit_code=first.exit_code, fix=first.fix)


# Where


def all_sites(topology: Topology, only: str | None) -> tuple[Site, ...]:
    """All embedded brokers, or that one."""
    return tuple(Site(broker, "") for broker in ([_embedded(topology, only)] if only else _all_embedded(topology)))


def sites_of(topology: Topology, address: str, only: str | None) -> tuple[Site, ...]:
    """The brokers that keep ``address``, or that one. What the topology does not know may be left of an older one."""
    policy = AddressBook(topology).resolve(address)
    if only is not None:
        return (Site(_embedded(topology, only), name_at(topology, address, only)),)
    if policy is not None and policy.brokers:
        return tuple(Site(_embedded(topology, name, address), policy.at_broker(name)) for name in policy.brokers)
    if policy is not None:
        raise click.UsageError(f"{address!r} is {policy.kind}: no broker keeps it")
    embedded = _all_embedded(topology)
    if len(embedded) > 1:
        raise click.UsageError(
            f"the topology does not say who keeps {address!r}: name it by --broker, of {', '.join(embedded)}"
        )
    return (Site(embedded[0], address),)


def name_at(topology: Topology, address: str, broker: str) -> str:
    """What ``address`` is called at that broker."""
    policy = AddressBook(topology).resolve(address)
    return policy.at_broker(broker) if policy is not None and broker in policy.brokers else address


def _all_embedded(topology: Topology) -> list[str]:
    embedded = [name for name, broker in topology.brokers.items() if broker.is_embedded]
    if not embedded:
        raise click.UsageError(f"mesh {topology.mesh} has no embedded broker")
    return embedded


def _embedded(topology: Topology, broker: str, address: str | None = None) -> str:
    declared = topology.brokers.get(broker)
    if declared is None:
        raise click.UsageError(f"no broker '{broker}' in mesh {topology.mesh}: known: {', '.join(topology.brokers)}")
    if not declared.is_embedded:
        what = f"{address!r} is kept by {broker}" if address else broker
        verb = ", which is" if address else " is"
        raise click.UsageError(f"{what}{verb} a broker of its own, with tools of its own")
    return broker


# Asking


def ask_each(topology: Topology, sites: Iterable[Site], op: str, arguments: Callable[[Site], Answer]) -> Found:
    """One after the other; one that fails does not keep the others from being asked."""
    found = Found()
    unmade: list[tuple[Site, CommandFailed]] = []
    for site in sites:
        parts: list[Answer] = []
        try:
            asyncio.run(_ask(topology, site.broker, {"op": op, **arguments(site)}, parts))
        except CommandFailed as failed:
            told = _of(site.broker, failed, _total(parts, "messages"))
            if failed.code == NOT_MADE_YET:
                unmade.append((site, told))
            else:
                found.failures.append(told)
            if not parts:
                continue
        found.answers.append((site, parts))
    if found.answers:
        found.unmade = unmade
    else:
        found.failures += [failed for _, failed in unmade]
    return found


def _of(broker: str, failed: CommandFailed, done: int) -> CommandFailed:
    so_far = f", after {done:,} messages" if done else ""
    fix = failed.fix or (FIX if failed.exit_code is ExitCode.UNREACHABLE else None)
    return CommandFailed(f"{broker}: {failed.message}{so_far}", exit_code=failed.exit_code, fix=fix, code=failed.code)


async def _ask(topology: Topology, broker: str, request: Mapping[str, Any], parts: list[Answer]) -> None:
    """Parts of the answer go to ``parts`` as they come. Raises CommandFailed, with the broker's own sentence."""
    async with connected(broker_server(topology, broker), CONNECT_TIMEOUT_S) as client:
        answers = await client.receiver(None, credit=ANSWER_CREDIT)
        requests = await client.sender(CONTROL_ADDRESS)
        asked = Message(json.dumps(request), reply_to=answers.answered_address, message_id=request["op"])
        outcome = await _in_time(await _in_time(requests.send(encode(asked))))
        if outcome is None or outcome.kind is not Kind.ACCEPTED:
            error = outcome.error if outcome is not None else None
            raise CommandFailed(error.description if error is not None else "the request was not accepted")
        has_more = True
        while has_more:
            answers.top_up()
            received = await _in_time(answers.receive())
            answers.settle(received, ACCEPTED)
            answer = json.loads(decode(received.data).body)
            if not answer["ok"]:
                raise CommandFailed(answer["error"], code=answer.get("code"))
            parts.append(answer[request["op"]])
            has_more = answer["more"]


async def _in_time(what: Any) -> Any:
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            return await what
    except TimeoutError:
        raise TimedOut(f"no answer within {ANSWER_TIMEOUT_S:g} s", fix=FIX) from None


# Answers


def queues_in(found: Found) -> Iterator[dict[str, Any]]:
    for site, parts in found.answers:
        for part in parts:
            for queue in part["queues"]:
                yield {"broker": site.broker, **queue}


def totals_in(found: Found, names: Sequence[str]) -> list[dict[str, Any]]:
    """Of each broker the sum of its parts; 0 where the queue is not made yet."""
    unmade: list[tuple[Site, list[Answer]]] = [(site, []) for site, _ in found.unmade]
    return [
        {"broker": site.broker, "address": site.address, **{name: _total(parts, name) for name in names}}
        for site, parts in found.answers + unmade
    ]


def _total(parts: Iterable[Answer], name: str) -> int:
    return sum(int(part.get(name, 0)) for part in parts)
