"""Explains where deliveries of an address go: has the routers of this host record decisions, and reads them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from addressing.address import normalize
from addressing.book import SpaceBooks
from addressing.topology.model import Topology
from mesh.deploy.control import RequestRefused, ask
from mesh.deploy.workdir import WorkDir
from mesh.operations.audited_changes import audited
from mesh.terminal.failure import CommandFailed
from mesh.watch.decision_rows import end_text
from mesh.watch.declared_addresses import decided_sentences, declared_sentences

_LOOK_S: Final = 0.2


@dataclass(slots=True)
class ExplainedDeliveries:
    """The decisions of routers, as they answered, each with its `router`; ``links``: by router, those that they name.

    ``notes`` are sentences about what is missing.
    """

    address: str
    decisions: list[dict[str, Any]] = field(default_factory=list)
    links: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def end(self, router: str, number: int | None) -> str:
        """Return what the link of ``router`` with this number leads to, as people know it."""
        return end_text(router, number, self.links.get(router, {}))


def sentences_about(topology: Topology, address: str) -> list[str]:
    """Return what the topology declares about an address, and who decides about its deliveries.

    Raises CommandFailed if the address is not available.
    """
    name = normalize(address)
    policy = SpaceBooks(topology).of("").resolve(name)
    declared = list(declared_sentences(topology, name, policy))
    if policy is None or policy.kind.is_refused:
        raise CommandFailed("; ".join(declared), fix="name an address that the topology makes available.")
    return [*declared, *decided_sentences(topology, name, policy)]


def explain_delivery(
    topology: Topology, address: str, seconds: int, count: int, now: Callable[[], float] = time.monotonic
) -> ExplainedDeliveries:
    """Record ``address`` at the routers of this host until ``count`` decisions are known, for ``seconds`` at most.

    Raises CommandFailed if no router runs here, or a router refuses.
    """
    found = ExplainedDeliveries(normalize(address))
    workdir = WorkDir(topology.work_dir)
    after: dict[str, int] = {}
    with audited(topology, "record", found.address, {"seconds": seconds}) as change:
        for name in topology.routers:
            try:
                # Somebody else may record the address, too: decisions from before are not asked for, and the recording
                # ends by itself, after the last one's time.
                begun = ask(workdir.control_socket(name), "record_decisions", address=found.address, seconds=seconds)
                after[name], change.is_begun = begun["after"], True
            except RequestRefused as refused:
                raise CommandFailed(f"{name}: {refused}") from None
            except OSError:
                found.notes.append(f"not asked: {name} does not run on this machine")
        if not after:
            raise CommandFailed(
                f"no router of mesh {topology.mesh} runs on this machine",
                fix="`amqpmesh status` shows which nodes run.",
            )
        change.told["done"] = {"routers": len(after)}
    until = now() + seconds
    while len(found.decisions) < count and now() < until:
        time.sleep(_LOOK_S)
        for name in list(after):
            _read(workdir, name, after, found)
    found.decisions.sort(key=lambda row: row["at"])
    del found.decisions[count:]
    return found


def _read(workdir: WorkDir, name: str, after: dict[str, int], found: ExplainedDeliveries) -> None:
    try:
        answer = ask(workdir.control_socket(name), "decisions", address=found.address, after=after[name])
    except OSError as error:
        found.notes.append(f"{name} no longer answers: {error}")
        del after[name]
        return
    after[name] = answer["next"]
    found.links.setdefault(name, {}).update(answer["links"])
    found.decisions += [{"router": name, **row} for row in answer["decisions"]]
    if answer["lost"]:
        found.notes.append(f"{name}: {answer['lost']:,} decisions were overwritten before they were read")
