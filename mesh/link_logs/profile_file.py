"""Reads traffic profiles; says all that is wrong with one at once, each with its place in the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from addressing import problem as problems
from addressing.document import parse_document
from addressing.errors import TopologyErrors
from addressing.loader import locate, read_text
from addressing.problem import Problem, hint_for, nearest
from addressing.topology import Topology
from mesh.exit_codes import ExitCode
from mesh.failure import CommandFailed
from mesh.link_logs.profile import PARTS, Profile, Traffic


class ProfileInvalid(CommandFailed):
    """Everything that is wrong with the file, as text and as maps."""

    def __init__(self, errors: TopologyErrors) -> None:
        super().__init__(str(errors), exit_code=ExitCode.TOPOLOGY_INVALID, is_formatted=True)
        self.errors = errors.to_json()

    def to_map(self) -> dict[str, Any]:
        count = len(self.errors)
        message = f"the profile has {count} error{'s' if count != 1 else ''}"
        return {"message": message, "exit_code": int(self.exit_code), "errors": self.errors}


def read_profile(path: Path, topology: Topology) -> Profile:
    """Raises ProfileInvalid with everything that is wrong with the file, in itself or for this topology."""
    try:
        text = read_text(path)
    except TopologyErrors as errors:
        raise ProfileInvalid(errors) from None
    return parse_profile(text, topology, file=str(path))


def parse_profile(text: str, topology: Topology, *, file: str = "<text>") -> Profile:
    document = parse_document(text)
    profile, found = None, list(document.problems)
    if not found:
        profile, found = _judge({} if document.data is None else document.data, topology)
    if found or profile is None:
        located = [locate(problem, document, text.splitlines(), file) for problem in found]
        raise ProfileInvalid(TopologyErrors(sorted(located, key=lambda error: (error.line, error.col))))
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
    message = str(detail["msg"]).removeprefix("Value error, ").replace("Input should be", "expected")
    if detail["type"] == "extra_forbidden":
        known = [field.alias or name for name, field in _part(path[:-1]).model_fields.items()]
        key = str(path[-1])
        hint = hint_for(key, known, title="allowed")
        return Problem(path, "AM101", f"unknown key {key!r}", hint, suggestion=nearest(key, known), at_key=True)
    if detail["type"] == "missing":
        return Problem(path, "AM102", f"the key {path[-1]!r} is missing", fix=f"add '{path[-1]}:'.", at_key=True)
    given = "" if repr(detail["input"]) in message else f", got {detail['input']!r}"
    return Problem(path, "AM106", f"{message}{given}"[:160], fix="write a value of that kind.")


def _part(path: problems.Path) -> type[BaseModel]:
    """The model of the mapping at ``path``."""
    names = [str(step) for step in path if not isinstance(step, int)]
    return PARTS.get(tuple(names)) or PARTS[(*names[:1], "*")]


def _strangers(profile: Profile, topology: Topology) -> Iterator[Problem]:
    """Names that the topology does not have."""
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


def _homes(pattern: str, traffic: Traffic, routers: tuple[str, ...]) -> Iterator[Problem]:
    for key in ("producers_at", "consumers_at"):
        for name in getattr(traffic, key):
            yield from _unknown(("addresses", pattern, key), "router", name, routers)


def _unknown(path: problems.Path, kind: str, name: str, known: tuple[str, ...]) -> Iterator[Problem]:
    if name not in known:
        message = f"the topology has no {kind} {name!r}"
        yield Problem(path, "AM106", message, hint_for(name, known), "name one of the topology.", nearest(name, known))


def _links(topology: Topology) -> set[frozenset[str]]:
    return {frozenset((edge.dialer, edge.to)) for edge in topology.edges()}
