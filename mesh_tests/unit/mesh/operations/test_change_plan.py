"""What does `amqpmesh plan` know of nodes that it could not observe?"""

from __future__ import annotations

import pytest

from addressing.topology.loader import parse_topology
from mesh.change.observations import Absence
from mesh.operations.change_plan import absences, is_elsewhere

TEXT = """\
mesh: m
routers:
  r1: {}
  r2: {host: 192.0.2.7, connect: [r1]}
  r3: {host: router3.example, connect: [r1]}
brokers:
  b1: {data: ./b1, host: 0.0.0.0, routers: [r1]}
"""


def test_a_node_that_does_not_run_is_told_from_one_that_is_silent_or_on_another_host() -> None:
    assert absences(parse_topology(TEXT), {"r1"}, ()) == {
        "r1": Absence.SILENT,
        "r2": Absence.ELSEWHERE,
        "r3": Absence.DOWN,
        "b1": Absence.DOWN,
    }
    assert absences(parse_topology(TEXT), {"r1"}, {"r1", "r2", "r3", "b1"}) == {}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::", "localhost", "mesh.example"])
def test_a_host_that_may_be_this_one_is_not_said_to_be_another(host: str) -> None:
    assert not is_elsewhere(host)


def test_several_nodes_have_a_plural() -> None:
    assert [each.plural for each in Absence] == ["do not run", "do not answer", "are on another host by the file"]
