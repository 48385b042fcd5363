"""A topology as processes hand it to nodes: checked before, and without the libraries that read and check files.

A node holds its topology for as long as it lives, and pydantic, YAML and the models would take 11 MB beside it. So a
process that has read the file writes the values of all models to bytes (`written`), and a node makes objects of them
that have the same keys and answer the same questions (`read`).
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from addressing.topology.queries import BrokerQueries, RouterQueries, TopologyQueries

if TYPE_CHECKING:
    from addressing.topology.model import DeclaredAddress, Topology

RevisionMark = tuple[int, str]
"""Number and hash of a committed revision."""
NO_REVISION: Final[RevisionMark] = 0, ""


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
    """A topology. ``file``: the file that it was read from, or None; ``mark``: its number and hash as a revision."""

    if TYPE_CHECKING:
        file: Path | None
        mark: RevisionMark


def written(topology: Topology, mark: RevisionMark = NO_REVISION) -> bytes:
    """Return the values of ``topology`` for a process that trusts this one: the bytes are a pickle.

    ``mark``: the revision that the topology was committed as.
    """
    values = {name: _plain(item) for name, item in topology}
    return pickle.dumps(PlainTopology({**values, "file": topology.file, "mark": mark}))


def written_addresses(addresses: Mapping[str, DeclaredAddress]) -> bytes:
    """Return declarations of a topology for a process that trusts this one: the bytes are a pickle."""
    return pickle.dumps({name: _plain(entry) for name, entry in addresses.items()})


class _ClassesOfAddresses(pickle.Unpickler):
    """Finds classes of this package only, so that bytes from elsewhere can call nothing in a node that serves."""

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name) if _is_own(module) else None
        if not isinstance(found, type) or not _is_own(found.__module__):
            raise pickle.UnpicklingError(f"expected a class of a declaration, got {module}.{name}")
        return found


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == "addressing"


def read_addresses(data: bytes) -> dict[str, DeclaredAddress]:
    """Return the declarations that ``written_addresses`` wrote. Raises ValueError for any other bytes."""
    try:
        return cast("dict[str, DeclaredAddress]", _ClassesOfAddresses(io.BytesIO(data)).load())
    except (pickle.UnpicklingError, AttributeError, EOFError, ImportError, LookupError, TypeError) as error:
        raise ValueError(f"the declarations of addresses cannot be read: {error}") from None


def mark_of(topology: Topology) -> RevisionMark:
    """Return the revision that ``topology`` was committed as; NO_REVISION if it comes from a file."""
    return cast("RevisionMark", getattr(topology, "mark", NO_REVISION))


def _plain(value: Any) -> Any:
    # Only a process that has read a topology, and so has imported the models, calls this function.
    from addressing.topology.broker_settings import Broker
    from addressing.topology.model import Router
    from addressing.topology.part import TopologyPart

    kinds: dict[type, type[PlainPart]] = {Router: PlainRouter, Broker: PlainBroker}
    if isinstance(value, TopologyPart):
        return kinds.get(type(value), PlainPart)({name: _plain(item) for name, item in value})
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


def read(data: bytes) -> Topology:
    """Return the topology that ``written`` wrote, with all that nodes ask of a `Topology`."""
    return cast("Topology", pickle.loads(data))
