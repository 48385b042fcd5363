"""Texts of a plan's steps: the title of a step, the conditions before and after the step, and the cost for clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from mesh.change.change_class import ChangeClass
from mesh.change.costs import CostEstimate, StepCost, brokers_left
from mesh.change.resource import Difference, ResourceKind
from mesh.change.step import shown

_CHANGES_SHOWN: Final = 6


def title_of(main: Difference, differences: Sequence[Difference], subject: str) -> str:
    """Return what a step does: verb, subject, and the values of the main resource that differ."""
    if main.is_added or main.is_removed:
        others = [f"{each.key[0]} {each.key[1]}" for each in differences if each is not main]
        beside = f", with {', '.join(others)}" if others and main.key[0] is not ResourceKind.ADDRESS else ""
        return f"{'add' if main.is_added else 'remove'} {subject}{beside}"
    changes = [
        f"{each.name} {_value(each.name, each.before)} -> {_value(each.name, each.after)}" for each in main.changes
    ]
    more = f", and {len(changes) - _CHANGES_SHOWN} more" if len(changes) > _CHANGES_SHOWN else ""
    return f"change {subject}: {', '.join(changes[:_CHANGES_SHOWN])}{more}"


def _value(name: str, value: Any) -> str:
    found = shown(name, value)
    if isinstance(found, list):
        return f"[{', '.join(map(str, found))}]"
    if isinstance(found, bool):
        return "true" if found else "false"
    return "none" if found is None else str(found)


def conditions_of(main: Difference, change_class: ChangeClass, subject: str) -> tuple[str, str]:
    """Return the sentences that hold before and after a step."""
    kind = main.key[0]
    if change_class is ChangeClass.MOVED and kind is ResourceKind.ADDRESS:
        return _conditions_of_move(main, subject)
    if main.is_added:
        return _conditions_of_addition(main, subject)
    if main.is_removed:
        return _conditions_of_removal(main, subject)
    if change_class is ChangeClass.RESTARTED:
        who = subject if kind in (ResourceKind.ROUTER, ResourceKind.BROKER) else "each node, one after the other,"
        before = f"every node of the mesh is ready, and {_port_sentence(main)}"
        return before, f"{who} runs with the new values, and has been proved ready"
    if change_class is ChangeClass.TOLD:
        return f"{subject} is as before the change", f"no link or connection is left that {subject} does not allow now"
    if change_class is ChangeClass.REMADE:
        return "both ends run", f"links of {subject} lead the new way, and the old way is closed"
    who = "the nodes of" if kind is ResourceKind.SETTINGS else "each node that has"
    return f"{who} {subject} run", f"{who} {subject} use the new values"


def _port_sentence(main: Difference) -> str:
    values = main.resource.values
    if main.change_of("port") or main.change_of("host"):
        return f"no process listens on {values['host']}:{values['port']}"
    if main.change_of("data"):
        return f"the folder {values['data']} is not there, or is empty"
    return "no other node is being restarted"


def _conditions_of_move(main: Difference, subject: str) -> tuple[str, str]:
    before, after = main.before, main.after
    assert before is not None
    brokers = ", ".join(before.values["brokers"])
    left = brokers_left(main)
    if left and after is not None:
        goals = ", ".join(after.values["brokers"])
        return (
            f"brokers {brokers} and {goals} run, and no client browses {subject}",
            f"{', '.join(left)} {'has' if len(left) == 1 else 'have'} no message of {subject} left, "
            f"and the messages counted at both ends are equal",
        )
    if after is not None and after.values["type"] == before.values["type"]:
        return (
            f"brokers {', '.join(after.values['brokers'])} run",
            f"{subject} is at brokers {', '.join(after.values['brokers'])}",
        )
    return f"{brokers} has no message of {subject}, or their loss is allowed", f"{brokers} does not serve {subject}"


def _conditions_of_addition(main: Difference, subject: str) -> tuple[str, str]:
    kind, name, values = main.key[0], main.key[1], main.resource.values
    match kind:
        case ResourceKind.LISTENER:
            where = name.split(" ", 1)[1]
            return f"no process listens on {where}", f"{subject} accepts clients"
        case ResourceKind.ROUTER:
            return (
                f"no process listens on {values['host']}:{values['port']}",
                f"{subject} runs, and has been proved ready",
            )
        case ResourceKind.BROKER if values["is_embedded"]:
            return (
                f"no process listens on {values['host']}:{values['port']}, and no broker has {values['data']}",
                f"{subject} runs, and has been proved ready",
            )
        case ResourceKind.CONNECTION | ResourceKind.ATTACHMENT | ResourceKind.BROKER:
            return "both ends run", f"{subject} is up"
        case _:
            return f"no node has {subject}", f"every node has {subject}"


def _conditions_of_removal(main: Difference, subject: str) -> tuple[str, str]:
    match main.key[0]:
        case ResourceKind.ROUTER:
            return f"every client of {subject} has another router to go to", f"{subject} has stopped in order"
        case ResourceKind.BROKER:
            return f"{subject} has no message of a declared address", f"no router is connected to {subject}"
        case ResourceKind.CONNECTION | ResourceKind.ATTACHMENT:
            return f"a path without {subject} is there", f"{subject} is closed, and no circuit leads over it"
        case _:
            return f"{subject} is as before the change", f"no link or connection of {subject} is left"


def cost_sentences(
    cost: StepCost,
    main: Difference | None,
    differences: Sequence[Difference],
    estimate: CostEstimate,
    unknown: str,
    where: str,
) -> tuple[str, ...]:
    """Return a sentence for each number of ``cost`` that is not 0, and one that nothing is released.

    ``unknown``: why numbers are unknown. ``where``: the nodes, in words.
    """
    told: list[str] = []
    user = f" of user {main.key[1]}" if main is not None and main.key[0] is ResourceKind.USER else ""
    clients = user or " of clients"
    if cost.connections_closed != 0:
        told.append(_counted("closes", cost.connections_closed, "connection", clients, where, unknown))
    if cost.links_ended != 0:
        told.append(_counted("ends", cost.links_ended, "link", clients, where, unknown))
    told += _move_sentences(differences, estimate, unknown)
    if cost.messages_lost != 0:
        told.append(_counted("loses", cost.messages_lost, "message", "", "", unknown))
    if cost.processes_restarted:
        told.append(f"restarts {cost.processes_restarted:,} process{'es' if cost.processes_restarted != 1 else ''}")
    if told and cost.deliveries_released == 0:
        told.append("no delivery is released")
    return tuple(told or ["clients notice nothing"])


def _counted(verb: str, count: int | None, noun: str, of: str, where: str, unknown: str) -> str:
    at = f" at {where}" if where else ""
    if count is None:
        return f"{verb} {noun}s{of}{at}: how many is unknown, {unknown}"
    return f"{verb} {count:,} {noun}{'s' if count != 1 else ''}{of}{at}"


def _move_sentences(differences: Sequence[Difference], estimate: CostEstimate, unknown: str) -> list[str]:
    """Return a sentence for all addresses that move between the same brokers."""
    moves: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for each in differences:
        left = brokers_left(each) if each.key[0] is ResourceKind.ADDRESS else ()
        if left and each.after is not None:
            goals = each.after.values["brokers"]
            fresh = tuple(broker for broker in goals if broker not in left) or goals
            moves.setdefault((left, fresh), []).append(each.key[1])
    told = []
    for (left, fresh), names in sorted(moves.items()):
        way = f"{', '.join(left)} -> {', '.join(fresh)}"
        what = names[0] if len(names) == 1 else f"of {len(names):,} addresses"
        counts = estimate.queue_counts(names, left)
        if counts is None:
            told.append(f"moves messages {what} {way}: how many is unknown, {unknown}")
        else:
            plural = "s" if counts[0] != 1 else ""
            told.append(f"moves {counts[0]:,} message{plural} ({_size(counts[1])}) {what} {way}")
    return told


def _size(count: int) -> str:
    """Return a number of bytes as text, in powers of 1,000."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
