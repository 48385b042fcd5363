"""Manages the queues of embedded brokers: sends requests to each broker's control address and collects the answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from addressing.address import CONTROL_ADDRESS
from addressing.book import AddressBook
from addressing.topology.model import Topology
from mesh.client.connect import connected
from mesh.client.errors import MeshError, TimedOut
from mesh.deploy.operator import broker_server
from mesh.operations.audited_changes import BROKER_CHANGES, audited
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed, as_failure
from wire.delivery import ACCEPTED, OutcomeCode
from wire.message import Message, decode, encode

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 60.0
ANSWER_CREDIT = 10
FIX = "`amqpmesh status` shows what runs."
PAGE_MESSAGES = 100
NOT_MADE_YET = "not-made-yet"
"""The error code in the answer of a broker that the topology names for the queue, and that has not made it yet."""

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class QueueSite:
    """A queue or topic at a broker: ``address`` is the name of the queue or topic at this broker."""

    broker: str
    address: str


@dataclass(slots=True)
class BrokerAnswers:
    """The answers of all asked brokers, each in parts, and the failures of brokers that gave no complete answer."""

    answers: list[tuple[QueueSite, list[Answer]]] = field(default_factory=list)
    failures: list[CommandFailed] = field(default_factory=list)
    unmade: list[tuple[QueueSite, CommandFailed]] = field(default_factory=list)
    """Brokers that have not made the queue yet; not failures, since another broker has the queue and answered."""

    def raise_failures(self, *, are_all: bool = False) -> None:
        """Raise CommandFailed with all failures, if there are any; with ``are_all``, only if no broker has answered,
        not even in part.
        """
        if self.failures and not (are_all and self.answers):
            first = self.failures[0]
            said = "; ".join(failure.message for failure in self.failures)
            raise CommandFailed(said, exit_code=first.exit_code, fix=first.fix)


# Functions that choose the brokers to ask.


def all_sites(topology: Topology, only: str | None) -> tuple[QueueSite, ...]:
    """Return each embedded broker, or only broker ``only``, as a site without address. Raises UsageError if there is no
    embedded broker, or ``only`` is not one.
    """
    return tuple(QueueSite(broker, "") for broker in ([_embedded(topology, only)] if only else _all_embedded(topology)))


def sites_of(topology: Topology, address: str, only: str | None) -> tuple[QueueSite, ...]:
    """Return ``address`` at each broker that the topology names for the address, or only at broker ``only``.

    An address that the topology does not declare is allowed, as a broker may have it from an older topology; such an
    address needs ``only`` unless there is exactly one embedded broker. Raises UsageError for a broker that is not an
    embedded one of the topology, and for an address that no broker keeps.
    """
    policy = AddressBook(topology).resolve(address)
    if only is not None:
        return (QueueSite(_embedded(topology, only), name_at(topology, address, only)),)
    if policy is not None and policy.brokers:
        return tuple(QueueSite(_embedded(topology, name, address), policy.at_broker(name)) for name in policy.brokers)
    if policy is not None:
        raise click.UsageError(f"address {address!r} is {policy.kind}: no broker keeps it, so no broker can be asked")
    embedded = _all_embedded(topology)
    if len(embedded) > 1:
        raise click.UsageError(
            f"the topology names no broker for {address!r}: name one with --broker, of {', '.join(embedded)}"
        )
    return (QueueSite(embedded[0], address),)


def name_at(topology: Topology, address: str, broker: str) -> str:
    """Return the name of ``address`` at ``broker``: the topology may give an address another name at a broker."""
    policy = AddressBook(topology).resolve(address)
    return policy.at_broker(broker) if policy is not None and broker in policy.brokers else address


def _all_embedded(topology: Topology) -> list[str]:
    embedded = [name for name, broker in topology.brokers.items() if broker.is_embedded]
    if not embedded:
        raise click.UsageError(
            f"mesh {topology.mesh} has no embedded broker: this command works on embedded brokers only"
        )
    return embedded


def _embedded(topology: Topology, broker: str, address: str | None = None) -> str:
    declared = topology.brokers.get(broker)
    if declared is None:
        raise click.UsageError(
            f"unknown broker '{broker}' in mesh {topology.mesh}: expected one of {', '.join(topology.brokers)}"
        )
    if not declared.is_embedded:
        what = f"{address!r} is kept by {broker}" if address else broker
        verb = ", which is" if address else " is"
        raise click.UsageError(
            f"{what}{verb} an existing broker: use its own tools, as amqpmesh manages embedded brokers only"
        )
    return broker


# Requests


def ask_each(
    topology: Topology, sites: Iterable[QueueSite], op: str, arguments: Callable[[QueueSite], Answer]
) -> BrokerAnswers:
    """Send request ``op`` to the broker of each site, one after the other, also after a broker has failed.

    Failures of brokers are not raised, but are in the result.
    """
    found = BrokerAnswers()
    unmade: list[tuple[QueueSite, CommandFailed]] = []
    for site in sites:
        parts: list[Answer] = []
        try:
            _ask_audited(topology, site, {"op": op, **arguments(site)}, parts)
        except MeshError as error:
            failed = as_failure(error)
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


def _ask_audited(topology: Topology, site: QueueSite, request: Answer, parts: list[Answer]) -> None:
    """As `_ask`; a request that changes something is in the audit, also if it fails."""
    op = str(request["op"])
    if op not in BROKER_CHANGES:
        asyncio.run(_ask(topology, site.broker, request, parts))
        return
    given = {name: value for name, value in request.items() if name not in ("op", "address", "source", "subscriber")}
    what = {"address": site.address, "subscriber": request.get("subscriber")}
    with audited(topology, op, site.broker, given, what) as change:

        def on_sent() -> None:
            change.is_begun = True

        try:
            asyncio.run(_ask(topology, site.broker, request, parts, on_sent))
        except CommandFailed:
            # The broker refuses before it does anything, and else says how many messages it has done.
            change.is_begun = bool(parts)
            raise
        finally:
            if parts:
                change.told["done"] = {"messages": _total(parts, "messages")}


def _of(broker: str, failed: CommandFailed, done: int) -> CommandFailed:
    so_far = f", after {done:,} messages" if done else ""
    fix = failed.fix or (FIX if failed.exit_code is ExitCode.UNREACHABLE else None)
    return CommandFailed(f"{broker}: {failed.message}{so_far}", exit_code=failed.exit_code, fix=fix, code=failed.code)


async def ask_broker(
    topology: Topology, broker: str, request: Mapping[str, Any], parts: list[Answer] | None = None
) -> list[Answer]:
    """Send ``request``, such as {"op": "purge", "address": "orders"}, to an embedded broker; return the answer's parts.

    The parts are appended to ``parts``, if given, as they arrive: after a failure the list tells what was done. Raises
    CommandFailed with the broker's text if the broker refuses the request, LinkRefusedError if the broker refuses a
    link, and TimedOut or Unreachable if the broker does not answer.
    """
    found: list[Answer] = [] if parts is None else parts
    await _ask(topology, broker, request, found)
    return found


async def _ask(
    topology: Topology,
    broker: str,
    request: Mapping[str, Any],
    parts: list[Answer],
    on_sent: Callable[[], None] = lambda: None,
) -> None:
    async with connected(broker_server(topology, broker), CONNECT_TIMEOUT_S) as client:
        answers = await client.receiver(None, credit=ANSWER_CREDIT)
        requests = await client.sender(CONTROL_ADDRESS)
        asked = Message(json.dumps(request), reply_to=answers.answered_address, message_id=request["op"])
        on_sent()
        outcome = await _in_time(await _in_time(requests.send(encode(asked))))
        if outcome is None or outcome.kind is not OutcomeCode.ACCEPTED:
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
        raise TimedOut(f"the broker did not answer the request within {ANSWER_TIMEOUT_S:g} s", fix=FIX) from None


def browse_each(
    topology: Topology, sites: Iterable[QueueSite], arguments: Callable[[QueueSite], Answer], most: int
) -> BrokerAnswers:
    """Send requests ``browse`` to the broker of each site until it has shown ``most`` messages, or all there are.

    The parts of an answer are its pages; failures of brokers are as for `ask_each`.
    """
    found = BrokerAnswers()
    for site in sites:
        pages: list[Answer] = []
        try:
            asyncio.run(_browse(topology, site.broker, {"op": "browse", **arguments(site)}, pages, most))
        except MeshError as error:
            found.failures.append(_of(site.broker, as_failure(error), 0))
            if not pages:
                continue
        found.answers.append((site, pages))
    return found


async def _browse(topology: Topology, broker: str, request: Answer, pages: list[Answer], most: int) -> None:
    while most > 0:
        (page,) = await ask_broker(topology, broker, {**request, "limit": min(most, PAGE_MESSAGES)})
        pages.append(page)
        most -= len(page["messages"])
        if page["next"] is None:
            return
        request = {**request, "after": page["next"]}


# Answers


def queues_in(found: BrokerAnswers) -> Iterator[dict[str, Any]]:
    for site, parts in found.answers:
        for part in parts:
            for queue in part["queues"]:
                yield {"broker": site.broker, **queue}


def totals_in(found: BrokerAnswers, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return for each broker the sum of each of the fields ``names`` over the parts of the broker's answer; the sums of
    a broker that has not made the queue yet are 0.
    """
    unmade: list[tuple[QueueSite, list[Answer]]] = [(site, []) for site, _ in found.unmade]
    return [
        {"broker": site.broker, "address": site.address, **{name: _total(parts, name) for name in names}}
        for site, parts in found.answers + unmade
    ]


def _total(parts: Iterable[Answer], name: str) -> int:
    return sum(int(part.get(name, 0)) for part in parts)
