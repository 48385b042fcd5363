"""What a step costs the clients of a mesh, as sentences about the numbers of its cost."""

from __future__ import annotations

from collections.abc import Sequence

from mesh.change.change_class import ChangeClass
from mesh.change.costs import CostEstimate, StepCost, brokers_left
from mesh.change.resource import Difference, ResourceKind
from mesh.change.unknowns import Unknowns

_CLIENTS = " of clients"


class CostSentences:
    """Tells costs of steps; ``unknowns`` knows why a number is unknown."""

    def __init__(self, estimate: CostEstimate, unknowns: Unknowns) -> None:
        self._estimate, self._unknowns = estimate, unknowns

    def of(
        self, cost: StepCost, change_class: ChangeClass, differences: Sequence[Difference], where: str
    ) -> tuple[str, ...]:
        """Return a sentence for each number of ``cost`` that is not 0, and one that nothing is released.

        ``where``: the nodes, in words.
        """
        main = differences[0]
        of = f" of user {main.key[1]}" if main.key[0] is ResourceKind.USER else _CLIENTS
        told: list[str] = []
        if cost.connections_closed != 0:
            told.append(_counted("closes", cost.connections_closed, "connection", of, where))
        if cost.links_ended != 0:
            told.append(_counted("ends", cost.links_ended, "link", of, where))
        if told and None in (cost.connections_closed, cost.links_ended):
            told[-1] += f", {self._unknowns.of_clients(differences)}"
        told += self._moves(differences)
        told += _sets(differences)
        if cost.messages_lost != 0:
            why = f", {self._unknowns.of_messages(differences)}" if cost.messages_lost is None else ""
            told.append(_counted("loses", cost.messages_lost, "message", "", "") + why)
        if cost.processes_restarted:
            told.append(f"restarts {cost.processes_restarted:,} process{'es' if cost.processes_restarted != 1 else ''}")
            if main.key[0] is ResourceKind.BROKER:
                told.append(f"queues and topics of {main.key[1]} pause meanwhile")
        if told and cost.deliveries_released == 0:
            told.append("no delivery is released")
        pause = "clients notice a pause at most" if change_class is ChangeClass.REMADE else "clients notice nothing"
        return tuple(told or [pause])

    def _moves(self, differences: Sequence[Difference]) -> list[str]:
        """Return a sentence for all addresses that move between the same brokers."""
        moves: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Difference]] = {}
        for each in differences:
            left = brokers_left(each) if each.key[0] is ResourceKind.ADDRESS else ()
            if left and each.after is not None:
                goals = each.after.values["brokers"]
                fresh = tuple(broker for broker in goals if broker not in left) or goals
                moves.setdefault((left, fresh), []).append(each)
        return [
            self._move(left, fresh, moved) for (left, fresh), moved in sorted(moves.items(), key=lambda move: move[0])
        ]

    def _move(self, left: tuple[str, ...], fresh: tuple[str, ...], moved: Sequence[Difference]) -> str:
        way = f"{', '.join(left)} -> {', '.join(fresh)}"
        what = moved[0].key[1] if len(moved) == 1 else f"of {len(moved):,} addresses"
        counts = self._estimate.queue_counts([each.key[1] for each in moved], left)
        if counts is None:
            return f"moves messages {what} {way}: how many is unknown, {self._unknowns.of_messages(moved)}"
        if counts == (0, 0):
            return f"no message {what} has to move {way}"
        return f"moves {counts[0]:,} message{'s' if counts[0] != 1 else ''} ({_size(counts[1])}) {what} {way}"


def _sets(differences: Sequence[Difference]) -> list[str]:
    """Return a sentence for each address that moves and names others, with which it has to be together."""
    told = []
    for each in differences:
        if each.key[0] is not ResourceKind.ADDRESS or each.after is None or not brokers_left(each):
            continue
        values = each.after.values
        named = [f"{values[key]} ({key})" for key in ("dead_letter", "expiry", "fallback") if values[key] is not None]
        if named:
            told.append(f"one set, to be moved together: {', '.join((each.key[1], *named))}")
    return told


def _counted(verb: str, count: int | None, noun: str, of: str, where: str) -> str:
    at = f" at {where}" if where else ""
    if count is None:
        return f"{verb} {noun}s{of}{at}: how many is unknown"
    return f"{verb} {count:,} {noun}{'s' if count != 1 else ''}{of}{at}"


def _size(count: int) -> str:
    """Return a number of bytes as text, in powers of 1,000."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
