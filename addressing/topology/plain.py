"""A topology as processes hand it to nodes: checked before, and without the libraries that read and check files.

A node holds its topology for as long as it lives, and pydantic, YAML and the models would take 11 MB beside it. So a
process that has read the file writes the values of all models to bytes (`written`), and a node makes objects of them
that have the same keys and answer the same questions (`read`).
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from addressing.topology.queries import BrokerQueries, RouterQueries, TopologyQueries

if TYPE_CHECKING:
    from addressing.topology.model import Topology


class PlainPart:
    """A mapping of a topology file, with its keys as attributes. Immutable."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name!r} of {type(self).__name__} cannot be set: a topology does not change")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__))


class PlainRouter(PlainPart, RouterQueries):
    """A router of a topology."""


class PlainBroker(PlainPart, BrokerQueries):
    """A broker of a topology."""


class PlainTopology(PlainPart, TopologyQueries):
    """A topology. ``file``: the file that it was read from, or None."""

    if TYPE_CHECKING:
        file: Path | None


def written(topology: Topology) -> bytes:
    """Return the values of ``topology`` for a process that trusts this one: the bytes are a pickle."""
    # Only a process that has read a topology, and so has imported the models, calls this function.
    from addressing.topology.broker_settings import Broker
    from addressing.topology.model import Router
    from addressing.topology.part import TopologyPart

    kinds: dict[type, type[PlainPart]] = {Router: PlainRouter, Broker: PlainBroker}

    def plain(value: Any) -> Any:
        if isinstance(value, TopologyPart):
            return kinds.get(type(value), PlainPart)({name: plain(item) for name, item in value})
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        return tuple(map(plain, value)) if isinstance(value, tuple) else value

    values = {name: plain(item) for name, item in topology}
    return pickle.dumps(PlainTopology({**values, "file": topology.file}))


def read(data: bytes) -> Topology:
    """Return the topology that ``written`` wrote, with all that nodes ask of a `Topology`."""
    return cast("Topology", pickle.loads(data))
