"""Entity types of management: attributes with AMQP types, the entities of a node, and who may see them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from mesh.watch.states import getters_of
from recording.entities import Entity
from wire.codec.values import Int, UInt, ULong

if TYPE_CHECKING:
    from addressing.operator_rights import Operator
    from addressing.topology.model import Topology
    from mesh.watch.host_model import HostModel
    from mesh.watch.states import ObservedNode

PREFIX: Final = "org.apache.qpid.dispatch."


class ValueType(StrEnum):
    """AMQP type of an attribute's value; any value may be null, for unknown or not applicable."""

    STRING = "string"
    BOOLEAN = "boolean"
    INT = "int"
    UINT = "uint"
    LONG = "long"
    ULONG = "ulong"
    STRINGS = "list of string"
    MAP = "map"


_MAKE: Final[dict[ValueType, Callable[[Any], Any]]] = {
    ValueType.STRING: str,
    ValueType.BOOLEAN: bool,
    ValueType.INT: lambda value: Int(int(value)),
    ValueType.UINT: lambda value: UInt(min(max(int(value), 0), 2**32 - 1)),
    ValueType.LONG: int,
    ValueType.ULONG: lambda value: ULong(max(int(value), 0)),
    ValueType.STRINGS: lambda value: list(map(str, value)),
    ValueType.MAP: dict,
}


@dataclass(frozen=True, slots=True)
class ManagedNode:
    """A node of the observer's host, as management shows it: from the model, and from the topology that it runs.

    ``log_levels``: levels of the node's log by module, as the node told them; "" is the level of all other modules.
    """

    host: HostModel
    node: ObservedNode
    topology: Topology
    log_levels: Mapping[str, str] = field(default_factory=lambda: {"": "info"})

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def is_router(self) -> bool:
        return self.node.name in self.topology.routers

    def age_of(self, utc_s: float | None) -> float | None:
        """Return the seconds since ``utc_s``, None if it is unknown."""
        return None if utc_s is None else max(0.0, self.host.utc_s - utc_s)


@dataclass(frozen=True, slots=True)
class Viewer:
    """An operator who looks at entities. ``known``: by address, whether the operator may view it.

    The judge of rights takes 5 us for an address, and a page of a table asks about all entities before the page.
    """

    operator: Operator
    known: dict[str, bool]

    def may_view(self, address: str) -> bool:
        found = self.known.get(address)
        if found is None:
            found = self.known[address] = self.operator.may_view(address)
        return found

    def sees_own(self, user: str | None) -> bool:
        """Say whether ``user``, whose connection or link it is, is the operator."""
        return user is not None and user == self.operator.name


Value = Callable[[ManagedNode, Any], Any]


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute. ``value`` computes it from the view and the state of an entity; ``meaning`` says from what.

    ``field``: the field of the model with this value; "" for a value that is computed or is the same for all.
    """

    name: str
    type: ValueType
    meaning: str
    value: Value
    field: str = ""

    def of(self, view: ManagedNode, state: Any) -> Any:
        """Return the value as `wire.codec.values` encodes it."""
        found = self.value(view, state)
        return None if found is None else _MAKE[self.type](found)


@dataclass(frozen=True, slots=True)
class EntityType:
    """A type. ``rows`` returns the states of its entities at a node; ``identity`` identifies one of them there.

    ``may_see``: whether somebody who may not view everything sees an entity; None: everybody does.
    ``ignores_unknown``: a query for an attribute that the type has not gets null, as in Dispatch for the types of its
    core, and not an error.
    """

    name: str
    meaning: str
    attributes: tuple[Attribute, ...]
    rows: Callable[[ManagedNode], Collection[Any]]
    identity: Value
    may_see: Callable[[Viewer, Any], bool] | None = None
    updated: tuple[str, ...] = ()
    """Attributes that UPDATE changes."""
    ignores_unknown: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.attributes)

    @property
    def short_name(self) -> str:
        return self.name.removeprefix(PREFIX)

    @property
    def operations(self) -> tuple[str, ...]:
        return ("READ", "UPDATE") if self.updated else ("READ",)

    def attribute(self, name: str) -> Attribute | None:
        return next((each for each in self.attributes if each.name == name), None)


def head(type_: str, identity: Value, name: Value | None = None) -> tuple[Attribute, ...]:
    """Return the attributes that every entity has: name, identity and type. ``name`` None: the same as the identity."""
    return (
        Attribute("name", ValueType.STRING, "name of the entity", name or identity),
        Attribute("identity", ValueType.STRING, "identifies the entity among those of its type at the node", identity),
        Attribute("type", ValueType.STRING, f"{type_}, always", lambda view, state: type_),
    )


class FieldAttributes:
    """Makes attributes that are fields of ``entity`` of the model. Raises KeyError for a field that the model has not.

    ``state_of``: returns the state of the entity for the state of a row; by default they are the same.
    """

    def __init__(self, entity: Entity, state_of: Callable[[Any], Any] = lambda state: state) -> None:
        self._entity = entity
        self._state_of = state_of

    def __call__(self, name: str, type_: ValueType, field: str) -> Attribute:
        get, state_of = getters_of(self._entity)[field], self._state_of
        found = self._entity.field(field)
        assert found is not None
        return Attribute(name, type_, found.meaning, lambda view, state: get(state_of(state)), field)


def fixed(name: str, type_: ValueType, value: Any, meaning: str) -> Attribute:
    """Return an attribute with the same value for all entities; ``value`` None: amqpmesh does not have it."""
    return Attribute(name, type_, meaning, lambda view, state: value)


def unknown(name: str, type_: ValueType, meaning: str = "") -> Attribute:
    """Return an attribute that is always null, since nodes do not record it or amqpmesh has nothing of the kind."""
    return Attribute(name, type_, f"null: {meaning or 'amqpmesh has nothing of the kind'}", lambda view, state: None)


def number_of(identity: str) -> str:
    """Return the number of a connection, link or queue within its node, of its id in the model: `r1/17` -> `17`."""
    return identity.rpartition("/")[2]
