"""Reads traffic profiles, and reports all problems of a file at once, each with its line in the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from addressing.topology import problem as problems
from addressing.topology.document import parse_document
from addressing.topology.model import Topology
from addressing.topology.problem import Problem, hint_for, nearest
from mesh.sample_logs.profile import PARTS, Profile, TrafficProfile
from mesh.terminal.invalid_file import InvalidFile, missing_key, unknown_key, wrong_value


class ProfileInvalid(InvalidFile):
    what = "profile"


def read_profile(path: Path, topology: Topology) -> Profile:
    """Read a profile. Raise ProfileInvalid with all problems of the file itself, and of the file with this topology."""
    return parse_profile(ProfileInvalid.read(path), topology, file=str(path))


def parse_profile(text: str, topology: Topology, *, file: str = "<text>") -> Profile:
    document = parse_document(text)
    profile, found = None, list(document.problems)
    if not found:
        profile, found = _judge({} if document.data is None else document.data, topology)
    if found or profile is None:
        raise ProfileInvalid.located(found, document, text, file)
    return profile


def _judge(data: Any, topology: Topology) -> tuple[Profile | None, list[Problem]]:
    if not isinstance(data, dict):
        fix = "begin with keys, such as 'rate: 500/s'."
        return None, [Problem((), "AM007", "expected a mapping with keys such as 'duration' and 'rate'", fix=fix)]
    try:
        profile = Profile.model_validate(data)
    except ValidationError as error:
        return None, [_problem(detail) for detail in error.errors(include_url=False)]
    return profile, list(_strangers(profile, topology))


def _problem(detail: Any) -> Problem:
    path = tuple(detail["loc"])
    if detail["type"] == "extra_forbidden":
        return unknown_key(path, _part(path[:-1]))
    return missing_key(path) if detail["type"] == "missing" else wrong_value(path, detail)


def _part(path: problems.Path) -> type[BaseModel]:
    """Return the class of the model for the mapping of a traffic profile at ``path``, a path of keys."""
    names = [str(step) for step in path if not isinstance(step, int)]
    return PARTS.get(tuple(names)) or PARTS[(*names[:1], "*")]


def _strangers(profile: Profile, topology: Topology) -> Iterator[Problem]:
    """Yield a problem for each name of a node, address or connection in the profile that the topology does not have."""
    nodes, routers = topology.node_names, tuple(topology.routers)
    for pattern, traffic in profile.addresses.items():
        yield from _unknown(("addresses", pattern), "address", pattern, tuple(topology.addresses))
        yield from _homes(pattern, traffic, routers)
    for key in ("clock_skew", "clock_steps", "lost_records"):
        for node in getattr(profile, key):
            yield from _unknown((key, node), "node", node, nodes)
    for i, outage in enumerate(profile.outages or ()):
        if outage.router is not None:
            yield from _unknown(("outages", i, "router"), "router", outage.router, routers)
        if outage.broker is not None:
            yield from _unknown(("outages", i, "broker"), "broker", outage.broker, tuple(topology.brokers))
        if outage.link is not None and frozenset(outage.link) not in _links(topology):
            message = f"{' and '.join(outage.link)} are not connected: expected the two ends of a link"
            yield Problem(("outages", i, "link"), "AM106", message, fix="name two routers with a connection.")


def _homes(pattern: str, traffic: TrafficProfile, routers: tuple[str, ...]) -> Iterator[Problem]:
    for key in ("producers_at", "consumers_at"):
        for name in getattr(traffic, key):
            yield from _unknown(("addresses", pattern, key), "router", name, routers)


def _unknown(path: problems.Path, kind: str, name: str, known: tuple[str, ...]) -> Iterator[Problem]:
    if name not in known:
        message = f"unknown {kind} {name!r}"
        yield Problem(path, "AM106", message, hint_for(name, known), "name one of the topology.", nearest(name, known))


def _links(topology: Topology) -> set[frozenset[str]]:
    return {frozenset((edge.dialer, edge.to)) for edge in topology.edges()}
