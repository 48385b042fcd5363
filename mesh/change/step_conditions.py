"""The conditions that hold before and after a step of a plan, as sentences."""

from __future__ import annotations

from mesh.change.change_class import ChangeClass
from mesh.change.costs import brokers_left
from mesh.change.resource import Difference, ResourceKind


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
