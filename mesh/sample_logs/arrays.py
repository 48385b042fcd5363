"""Turns planned links and addresses into the arrays of a `LogPlan`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from linklogs.generating.plan import Links, PlannedTraffic
from mesh.sample_logs.population import AddressShare, treatment
from mesh.sample_logs.profile import log_us
from mesh.sample_logs.registry import Registry


def link_table(registry: Registry, addresses: Sequence[AddressShare]) -> Links:
    entries, names = registry.links, {each.name: i for i, each in enumerate(addresses)}
    return Links(
        life=numpy.array([-1, *(each.run.place for each in entries)], numpy.int64),
        number=numpy.array([0, *(each.number for each in entries)], numpy.int64),
        address=numpy.array([-1, *(names[str(each.columns["address"])] for each in entries)], numpy.int64),
        role=("", *(str(each.columns["role"]) for each in entries)),
        user=("", *(each.user for each in entries)),
    )


def traffic_table(addresses: Sequence[AddressShare]) -> PlannedTraffic:
    parts = [each.traffic for each in addresses]
    return PlannedTraffic(
        address=tuple(each.name for each in addresses),
        treatment=tuple(treatment(each) for each in addresses),
        size_log=numpy.log([max(1, each.size) for each in parts]),
        size_spread=numpy.array([each.size_spread for each in parts]),
        took_log=numpy.array([log_us(each.latency) for each in parts]),
        took_spread=numpy.array([each.latency_spread for each in parts]),
        slow_share=numpy.array([each.slow for each in parts]),
        slow_factor=numpy.array([each.slow_factor for each in parts]),
        rejected=numpy.array([each.rejected for each in parts]),
        released=numpy.array([each.released for each in parts]),
        modified=numpy.array([each.modified for each in parts]),
    )
