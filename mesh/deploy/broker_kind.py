"""Brokers as a kind of node. amqpmesh runs embedded brokers; existing brokers are only declared in the topology.

For a mesh to be ready, a probe message has to be stored in the queue `_amqpmesh/broker/<name>/probe-<token>` of each
embedded broker and received again, where possible through routers that have no connection to the broker. No probe goes
to an existing broker: its routers only have to be connected to the broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from addressing.address import BROKER_PREFIX
from addressing.topology.plain import mark_of
from mesh.deploy.neighborhood import parts
from mesh.deploy.node_kind import NodeKind, Note, OnStarted, Snapshot
from mesh.deploy.workdir import WorkDir
from mesh.terminal.counts import number_of
from wire import log
from wire.transport.tls import Role

if TYPE_CHECKING:
    from addressing.topology.model import Topology
    from mesh.deploy.trip import Trip
    from wire.node_files import NodeFiles

WORTH_TELLING_S = 1.0
"""`status` leaves out shorter waits of producers for credit of a full queue: consumers often make room sooner."""


def full_queues(name: str, snapshot: Snapshot | None) -> Iterator[str]:
    """Yield a sentence for each full queue of broker ``name`` for whose credit a producer has waited 1 s or more.

    ``snapshot`` is the broker's; None, for a broker that does not answer, yields nothing.
    """
    for held in (snapshot or {}).get("queues", ()):
        count, longest_s = held.get("waiting_count", 0), held.get("waiting_s", 0.0)
        if count and longest_s >= WORTH_TELLING_S:
            who = f"{count:,} producers wait" if count > 1 else "a producer waits"
            queue = held["queue"]
            yield (
                f"{who} for credit for {longest_s:.0f} s: queue {held['address']} on broker {name} is full "
                f"({number_of(queue['available_count'] + queue['acquired_count'], 'message')}, "
                f"{number_of(queue['size_bytes'], 'byte')})"
            )


def shortages(name: str, snapshot: Snapshot | None) -> Iterator[str]:
    """Yield a sentence if broker ``name`` lacks disk space, and one if it lacks memory: either makes producers wait."""
    found = snapshot or {}
    if found.get("is_disk_low"):
        yield f"producers wait for broker {name}: its disk is nearly full (`disk_free_min_bytes`)"
    if found.get("is_memory_low"):
        yield (
            f"producers wait for broker {name}: consumers of messages that lie in memory hold "
            f"{found['pinned_bytes'] >> 20:,} MiB and do not settle them"
        )


class BrokerKind(NodeKind):
    """Brokers as a kind of node: their processes are started first, so that most routers connect at the first attempt.

    Brokers stop last, after they have accepted and settled the deliveries that routers still had for them.
    """

    name: ClassVar[str] = "broker"
    rank: ClassVar[int] = 0
    role: ClassVar[Role | None] = Role.BROKER
    notes: ClassVar[Mapping[str, Note]] = {"full_queues": full_queues, "short_brokers": shortages}

    def declared(self, topology: Topology) -> Mapping[str, object]:
        return topology.brokers

    def names(self, topology: Topology) -> tuple[str, ...]:
        return tuple(name for name, broker in topology.brokers.items() if broker.is_embedded)

    def ports(self, topology: Topology, name: str) -> Sequence[tuple[str, int]]:
        broker = topology.brokers[name]
        return [(broker.host, broker.port)]

    def data(self, topology: Topology, name: str) -> Path | None:
        data = topology.brokers[name].data
        return topology.locate(data) if data is not None else None

    async def run(
        self, topology: Topology, name: str, files: NodeFiles, stop: asyncio.Event, on_started: OnStarted
    ) -> None:
        from broker.run import RunningBroker, run_broker
        from broker.store.judgement import StoreDamagedError
        from mesh.deploy.operator_requests import closing_handlers
        from mesh.deploy.revision_requests import node_handlers
        from mesh.deploy.store_failure import damaged_store
        from mesh.deploy.trace_files import TraceFiles

        async def on_broker_started(broker: RunningBroker) -> None:
            await on_started(
                {
                    "snapshot": lambda _: {"node": broker.snapshot()},
                    "relist": lambda _: broker.list_live(),
                    **closing_handlers(broker),
                    **node_handlers(mark_of(topology), broker, log.emit),
                    "trace": TraceFiles(WorkDir(topology.work_dir), name, broker.endpoint_of, log.emit).answer,
                }
            )

        try:
            await run_broker(topology, name, files, stop, on_broker_started)
        except StoreDamagedError as damage:
            raise damaged_store(damage, f"{name}: ") from None

    def probes(self, topology: Topology, token: str) -> Sequence[Trip]:
        return [broker_trip(topology, name, token) for name in self.names(topology)]


def broker_trip(topology: Topology, broker: str, token: str) -> Trip:
    from mesh.deploy.trip import Trip

    attached = topology.routers_of(broker)
    part = next(part for part in parts(topology) if attached[0] in part)
    distant = [name for name in part if name not in attached] or list(attached)
    return Trip(distant[0], distant[-1], f"{BROKER_PREFIX}{broker}/probe-{token}")
