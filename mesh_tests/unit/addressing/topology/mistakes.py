"""Topologies to make mistakes in, and what is said of those."""

from __future__ import annotations

import pytest

from addressing.errors import ConfigError, TopologyErrors
from addressing.topology.loader import parse_topology

R = "mesh: m\nrouters: {r1: }\n"
ONE = "mesh: m\nrouters: {r1: }\nbrokers: {b1: {data: b1}}\n"
TWO = "mesh: m\nrouters: {r1: , r2: }\nbrokers: {b1: {data: b1}, b2: {data: b2}}\n"


def errors_of(text: str) -> tuple[ConfigError, ...]:
    with pytest.raises(TopologyErrors) as caught:
        parse_topology(text, file="mesh.yml")
    return caught.value.errors


def found_in(text: str) -> list[str]:
    return [f"{error.line}:{error.col} {error.code}" for error in errors_of(text)]
