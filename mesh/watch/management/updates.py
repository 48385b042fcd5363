"""Changes that UPDATE makes at a node: which request goes to the control socket of the node for which attribute."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mesh.watch.management.config_types import CONNECTOR, LOG
from mesh.watch.management.link_types import CONNECTION_TYPE, LINK_TYPE
from mesh.watch.management.protocol import ManagementError, Status, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mesh.watch.management.answering import Question
    from mesh.watch.management.entity_types import EntityType

LEVELS = ("debug", "info", "warning", "error")
_DISPATCH_LEVELS = {"trace": "debug", "notice": "info", "critical": "error"}
"""Dispatch's levels that amqpmesh has not, and those that have the least more events."""
_MOST_DIGITS = 9
REASON = "adminStatus was set to deleted, by management"


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A request to the control socket of the entity's node. ``changed``: attributes as they are once it is done.

    ``other``: the router at the other end, which has to be asked as well, with the arguments ``other_arguments``.
    """

    op: str
    arguments: dict[str, Any]
    changed: dict[str, Any] = field(default_factory=dict)
    other: str = ""
    other_arguments: dict[str, Any] = field(default_factory=dict)


_OPERATIONS = {
    CONNECTOR.name: "cost",
    LOG.name: "log_level",
    CONNECTION_TYPE.name: "close_connection",
    LINK_TYPE.name: "close_link",
}


def operation_of(type_: EntityType) -> str:
    """Return the request to a node that an UPDATE of ``type_`` stands for, as the audit has it; `update` for others."""
    return _OPERATIONS.get(type_.name, "update")


def named_module(question: Question) -> tuple[EntityType, Any] | None:
    """Return type and state of the log of a module that an UPDATE names; None for an UPDATE of anything else.

    A module without a level of its own has the level of all modules, and the node says which modules it has.
    """
    request = question.request
    name = request.text("identity") or request.text("name") or ""
    if request.text("type") not in (LOG.name, LOG.short_name) or not name.startswith("log/"):
        return None
    module = name.removeprefix("log/")
    levels = question.view.log_levels
    module = "" if module == "DEFAULT" else module
    return LOG, (module, levels.get(module, levels.get("", "info")))


def change_of(question: Question, type_: EntityType, state: Any) -> NodeChange | None:
    """Return the change that an UPDATE of an entity asks for; None if it names no attribute that would change.

    A cost is always asked of the node: the model is behind the node by a second, so that a change which takes back the
    one before would be lost.

    Raises ManagementError for an operator who may not, an attribute that does not change, or an invalid value.
    """
    if not question.operator.manages_mesh:
        raise ManagementError(
            Status.FORBIDDEN,
            f"{question.operator.name} may not change {type_.name}: expected a user with `manage: ['#']` in the "
            "topology, or an operator of the mesh",
        )
    wanted = _wanted(question, type_, state)
    if not wanted:
        return None
    if type_ is CONNECTOR:
        return _cost(question.view.name, wanted["cost"], state)
    if type_ is LOG:
        return _log_level(wanted["enable"], state)
    return _close(question, wanted["adminStatus"], type_, state)


def _wanted(question: Question, type_: EntityType, state: Any) -> Mapping[str, Any]:
    """Return the attributes of the request's body that the node has to be asked for."""
    wanted: dict[str, Any] = {}
    if question.request.odd_keys:
        raise ManagementError(
            Status.BAD_REQUEST,
            f"expected the name of an attribute as each key of the body, a string, got {question.request.odd_keys[0]}",
        )
    for name, value in question.request.body.items():
        attribute = type_.attribute(name)
        if attribute is None:
            expected = ", ".join(type_.updated) or "none"
            raise ManagementError(
                Status.BAD_REQUEST, f"{type_.name} has no attribute {shown(name)}: UPDATE changes {expected}"
            )
        is_cost = type_ is CONNECTOR and name == "cost" and value is not None
        if not is_cost and value == attribute.of(question.view, state):
            continue
        if name not in type_.updated:
            expected = f"UPDATE changes {', '.join(type_.updated)} only" if type_.updated else "nothing of it changes"
            status = Status.BAD_REQUEST if type_.updated else Status.NOT_IMPLEMENTED
            raise ManagementError(status, f"{name} of {type_.name} cannot be changed: {expected}")
        wanted[name] = value
    return wanted


def _cost(node: str, value: Any, state: Any) -> NodeChange:
    # The original qdmanage sends numbers of types that its own schema does not have as text.
    cost = int(value) if isinstance(value, str) and value.isdecimal() and len(value) <= _MOST_DIGITS else value
    if isinstance(cost, bool) or not isinstance(cost, int) or state.cost is None:
        what = "a whole number" if state.cost is not None else "a connection between routers, which has a cost"
        raise ManagementError(Status.BAD_REQUEST, f"cost: expected {what}, got {shown(value)}")
    # Of the costs at both ends the larger one counts.
    there = {"neighbor": node, "cost": int(cost)}
    return NodeChange("cost", {"neighbor": state.to, "cost": int(cost)}, {"cost": int(cost)}, state.to, there)


def _log_level(value: Any, state: Any) -> NodeChange:
    name = str(value).rstrip("+").lower() if isinstance(value, str) else ""
    level = _DISPATCH_LEVELS.get(name, name)
    if level not in LEVELS:
        raise ManagementError(
            Status.BAD_REQUEST,
            f"enable: expected one of {', '.join(each + '+' for each in LEVELS)}, got {shown(value)}",
        )
    return NodeChange("log_level", {"module": state[0], "level": level}, {"enable": f"{level}+"})


def _close(question: Question, value: Any, type_: EntityType, state: Any) -> NodeChange:
    if value != "deleted":
        raise ManagementError(Status.BAD_REQUEST, f"adminStatus: expected 'enabled' or 'deleted', got {shown(value)}")
    connection = state.connection if type_ is LINK_TYPE else state
    if connection is None:
        raise ManagementError(Status.NOT_FOUND, "the connection of the link is not known yet: ask again")
    if connection.role != "client":
        raise ManagementError(
            Status.BAD_REQUEST,
            f"expected a connection of a client, and the role of this one is {connection.role}: the mesh would make it "
            "again",
        )
    arguments: dict[str, Any] = {"connection": int(connection.id.rpartition("/")[2])}
    if type_ is LINK_TYPE:
        arguments["link"] = state.number
    else:
        assert type_ is CONNECTION_TYPE
    arguments |= {"operator": question.operator.name, "reason": REASON}
    op = "close_link" if type_ is LINK_TYPE else "close_connection"
    return NodeChange(op, arguments, {"adminStatus": "deleted", "operStatus": "closing"})
