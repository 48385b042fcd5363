"""The names by which an operator has to allow that a step loses messages, or leaves them where no client finds them."""

from __future__ import annotations

from collections.abc import Sequence

from mesh.change.costs import StepCost, brokers_left
from mesh.change.effects import names_other_server
from mesh.change.groups import declarations_of
from mesh.change.observations import Observations
from mesh.change.resource import Difference, ResolvedTopology, ResourceKind


def losses_of(
    group: Sequence[Difference],
    cost: StepCost,
    before: ResolvedTopology,
    after: ResolvedTopology,
    observations: Observations,
) -> tuple[str, ...]:
    """Return the names of addresses and brokers whose messages a step loses, or may lose.

    No name if the observations say that there is no message to lose.
    """
    main = group[0]
    kind, name = main.key
    if kind is ResourceKind.ADDRESS:
        old, new = declarations_of(main)
        is_lost = cost.messages_lost != 0 or any(_has_no_ledger(each, before, after) for each in group)
        declared = name if name in (old, new) else new or old
        return (declared,) if is_lost and declared is not None else ()
    if kind is ResourceKind.BROKER and not main.is_added:
        return (name,) if _broker_loses(main, before, observations) else ()
    return ()


def _has_no_ledger(each: Difference, before: ResolvedTopology, after: ResolvedTopology) -> bool:
    """Tell whether an address moves from or to an existing broker, which counts nothing for amqpmesh."""
    if each.before is None or each.after is None:
        return False
    left = brokers_left(each)
    goals = [broker for broker in each.after.values["brokers"] if broker not in left] or each.after.values["brokers"]
    return bool(left) and not (
        all(before.value(ResourceKind.BROKER, broker, "is_embedded") for broker in left)
        and all(after.value(ResourceKind.BROKER, broker, "is_embedded") for broker in goals)
    )


def _broker_loses(main: Difference, before: ResolvedTopology, observations: Observations) -> bool:
    """Tell whether messages at a broker are no longer found.

    These are: all messages, if the URL or the host name of an existing broker names another server; subscriptions whose
    names change; and the queues of a removed broker that no declaration has there. An embedded broker that was not
    observed may have such queues.
    """
    url, subscriptions = main.change_of("url"), main.change_of("subscriptions")
    if main.is_removed:
        name = main.key[1]
        if before.value(ResourceKind.BROKER, name, "is_embedded") and not observations.are_observed([name]):
            return True
        kept = {queue.address for queue in observations.queues if queue.broker == name and queue.messages}
        return any(
            (ResourceKind.ADDRESS, address) not in before.resources
            or name not in before.value(ResourceKind.ADDRESS, address, "brokers")
            for address in kept
        )
    has_other_server = (url is not None and names_other_server(url)) or main.change_of("hostname") is not None
    return has_other_server or subscriptions is not None
