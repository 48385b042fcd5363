"""Computes the true totals to which generated files must add up; the counts come from generation, not from the plan."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy

from linklogs.generating.ledger import Ledger
from linklogs.generating.plan import NO_LINK, OUTCOMES, PARTS, Array, LogPlan
from linklogs.generating.queues import EVENTS, SimulatedQueues
from recording.columns import DeliveryPart

TRUTH_SCHEMA = "amqpmesh.linklogs.truth/1"
_IN = [PARTS.index(part) for part in (DeliveryPart.WHOLE, DeliveryPart.MANY)]
_OUT = [PARTS.index(part) for part in (DeliveryPart.WHOLE, DeliveryPart.COPY)]

Totals: TypeAlias = dict[str, Any]


def truth(
    plan: LogPlan, ledger: Ledger, shelves: SimulatedQueues, lost: Sequence[int], *, seed: int, level: str, records: int
) -> dict[str, Any]:
    links = LinkTotals(plan, ledger)
    return {
        "schema": TRUTH_SCHEMA,
        "mesh": plan.mesh,
        "seed": seed,
        "level": level,
        "begins": _time(plan.begins_us),
        "ends": _time(plan.ends_us),
        "records": records - sum(lost),
        "addresses": _addresses(plan, ledger, links),
        "nodes": _nodes(plan, links, lost),
        "links": links.told(),
        "users": links.by_user(),
        "queues": _queues(plan, ledger, shelves),
        "outages": [
            {"kind": each.kind, "what": list(each.what), "cause": each.cause,
             "from": _time(each.from_us), "to": _time(each.to_us)} for each in plan.outages
        ],
    }  # fmt: skip


class LinkTotals:
    """Messages and bytes by outcome for each link, separately as the incoming and as the outgoing link of records."""

    def __init__(self, plan: LogPlan, ledger: Ledger) -> None:
        self._plan = plan
        count, size_bytes = ledger.by_step()
        steps = plan.routes.steps
        came, went = numpy.isin(steps.part, _IN), numpy.isin(steps.part, _OUT)
        self.came = self._added(steps.incoming, came, count), self._added(steps.incoming, came, size_bytes)
        self.went = self._added(steps.outgoing, went, count), self._added(steps.outgoing, went, size_bytes)
        self._missed = ledger.missed
        self._starved_us = numpy.zeros(len(plan.links.number), numpy.int64)
        numpy.add.at(self._starved_us, plan.starvation.link, plan.starvation.to_us - plan.starvation.from_us)

    def _added(self, link: Array, kept: Array, values: Array) -> Array:
        added = numpy.zeros((len(self._plan.links.number), len(OUTCOMES)), numpy.int64)
        numpy.add.at(added, link[kept], values[kept])
        return added

    def told(self) -> list[Totals]:
        """List the totals of each link that had traffic, missed copies or time without credit.

        ``missed``: copies not sent by the link for want of credit.
        """
        links, lives = self._plan.links, self._plan.lives
        busy = self.came[0].any(axis=1) | self.went[0].any(axis=1) | (self._starved_us > 0) | (self._missed > 0)
        busy[NO_LINK] = False
        return [
            {
                "node": lives[links.life[i]].node,
                "run": lives[links.life[i]].begins_us + lives[links.life[i]].skew_us,
                "link": int(links.number[i]),
                "role": links.role[i],
                "address": self._plan.traffic.address[links.address[i]],
                "user": links.user[i] or None,
                "came": self.sum(self.came, numpy.array([i])),
                "went": self.sum(self.went, numpy.array([i])),
                "starved_us": int(self._starved_us[i]),
                "missed": int(self._missed[i]),
            }
            for i in numpy.flatnonzero(busy)
        ]

    def by_user(self) -> dict[str, Totals]:
        users = numpy.array(self._plan.links.user)
        names = sorted(set(self._plan.links.user) - {""})
        return {name: self.both(numpy.flatnonzero(users == name)) for name in names}

    def both(self, places: Array) -> Totals:
        return {"came": self.sum(self.came, places), "went": self.sum(self.went, places)}

    def sum(self, totals: tuple[Array, Array], places: Array) -> Totals:
        count, size_bytes = totals[0][places].sum(axis=0), totals[1][places].sum(axis=0)
        outcomes = {word.value: int(count[i]) for i, word in enumerate(OUTCOMES) if count[i]}
        return {"messages": int(count.sum()), "size_bytes": int(size_bytes.sum()), "outcomes": outcomes}

    def with_role(self, *roles: str) -> Array:
        return numpy.isin(numpy.array(self._plan.links.role), roles)


def _addresses(plan: LogPlan, ledger: Ledger, links: LinkTotals) -> dict[str, Totals]:
    latencies = ledger.latencies()
    ways = {"sent": ("came", "producer"), "fetched": ("came", "broker"), "received": ("went", "consumer"),
            "stored": ("went", "broker")}  # fmt: skip
    found: dict[str, Totals] = {}
    for i, address in enumerate(plan.traffic.address):
        own = plan.links.address == i
        totals = {
            name: links.sum(getattr(links, side), numpy.flatnonzero(own & links.with_role(role)))
            for name, (side, role) in ways.items()
        }
        latency = {name: each for name, each in latencies[i].items() if each}
        found[address] = {"treatment": plan.traffic.treatment[i], **totals, "latency_us": latency}
    return found


def _nodes(plan: LogPlan, links: LinkTotals, lost: Sequence[int]) -> dict[str, Totals]:
    """Return the totals of each node over all of its runs; ``runs`` holds the start times by the node's own clock."""
    found: dict[str, Totals] = {}
    for i, life in enumerate(plan.lives):
        own = numpy.array([j for j, each in enumerate(plan.lives) if each.node == life.node])
        told = found.setdefault(life.node, {
            "role": life.role, **links.both(numpy.flatnonzero(numpy.isin(plan.links.life, own))),
            "clock_skew_us": life.skew_us, "clock_steps": [], "records_lost": 0, "runs": [],
        })  # fmt: skip
        told["records_lost"] += lost[i]
        told["clock_steps"] += [{"at": _time(at_us), "by_us": by_us} for at_us, by_us in life.steps]
        told["runs"].append(life.begins_us + life.skew_us)
    return found


def _queues(plan: LogPlan, ledger: Ledger, shelves: SimulatedQueues) -> list[Totals]:
    left = numpy.bincount(shelves.waiting.queue, minlength=len(plan.queues.number))
    return [
        {
            "node": plan.lives[plan.queues.life[i]].node if plan.queues.life[i] >= 0 else None,
            "queue": int(plan.queues.number[i]),
            "address": plan.traffic.address[plan.queues.address[i]],
            "name": plan.queues.name[i] or None,
            **{event.value: {"messages": int(ledger.moved[i, j]), "size_bytes": int(ledger.moved_bytes[i, j])}
               for j, event in enumerate(EVENTS)},
            "left": int(left[i]),
            "most": int(ledger.most_in_queue[i]),
        }
        for i in range(len(plan.queues.number))
    ]  # fmt: skip


def _time(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="microseconds")
