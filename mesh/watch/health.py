"""Says whether the observer, the nodes of its host, and the mesh are well, as far as the model of the host can say.

The functions answer `/livez`, `/readyz` and `/healthz/mesh`. Sans-IO.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from mesh.watch.expected_nodes import ExpectedNode
from mesh.watch.host_model import HostModel
from mesh.watch.states import SILENT_S

OBSERVER_STALL_S: Final = 3.0
"""An observer that has not read the rings for so long stands still: it reads them each second, or more often."""
_STATE_TEXTS: Final = {
    "running": "runs",
    "silent": "is silent",
    "ended": "has ended in order",
    "lost": "is lost: its process failed, or is gone without a record of its end",
}


class Health(NamedTuple):
    """The judgement, with a sentence for each fault, or one sentence about the checks that found no fault."""

    is_well: bool
    sentences: list[str]


def livez(host: HostModel, now_s: float, node: str | None = None) -> Health:
    """Say whether the observer reads the rings, or whether ``node`` is alive. ``now_s``: UTC.

    The observer's own answer does not depend on any node: a restart of the observer brings no node back.
    """
    age_s = max(0.0, now_s - host.utc_s)
    if age_s >= OBSERVER_STALL_S:
        return Health(
            False,
            [f"the observer has not read the rings for {age_s:.1f} s, expected less than {OBSERVER_STALL_S:g} s"],
        )
    if node is None:
        return Health(True, [f"the observer read the rings {age_s:.1f} s ago"])
    state = host.nodes.get(node)
    if state is None:
        names = ", ".join(sorted(host.nodes)) or "none"
        return Health(False, [f"the observer has never seen node {node!r}; nodes on this host: {names}"])
    return Health(state.state == "running", [_sentence_of(host, node)])


def readyz(host: HostModel, expected: Iterable[ExpectedNode]) -> Health:
    """Say whether each of ``expected``, the topology's nodes on this host, runs and hears its neighbors."""
    expected = tuple(expected)
    if not expected:
        return Health(False, ["no node of the topology was seen on this host yet"])
    return _health(_not_ready(host, expected), f"{_number(expected)} on this host run and hear all neighbors")


def healthz_mesh(host: HostModel, expected: Iterable[ExpectedNode]) -> Health:
    """Say whether the nodes on this host are ready, and each interior router has a path to all other ones of the mesh.

    Nodes on other hosts are seen by these paths only.
    """
    expected = tuple(expected)
    if not expected:
        return Health(False, ["no node of the topology was seen on this host yet"])
    faults = [*_not_ready(host, expected), *_without_path(host, expected)]
    return _health(faults, f"{_number(expected)} on this host are ready and have a path to each interior router")


def _health(faults: Iterable[str], well: str) -> Health:
    sentences = list(faults)
    return Health(not sentences, sentences or [well])


def _number(expected: tuple[ExpectedNode, ...]) -> str:
    return f"{len(expected)} {'node' if len(expected) == 1 else 'nodes'}"


def _not_ready(host: HostModel, expected: Iterable[ExpectedNode]) -> Iterator[str]:
    for each in expected:
        if not _is_running(host, each.name):
            yield _sentence_of(host, each.name)
            continue
        heard = host.nodes[each.name].neighbors
        yield from (
            f"router {each.name} does not hear its neighbor {name}" for name in each.neighbors if name not in heard
        )


def _without_path(host: HostModel, expected: Iterable[ExpectedNode]) -> Iterator[str]:
    for each in expected:
        if _is_running(host, each.name):
            paths = host.nodes[each.name].paths
            yield from (
                f"router {each.name} has no path to router {name}" for name in each.egresses if name not in paths
            )


def _is_running(host: HostModel, name: str) -> bool:
    return name in host.nodes and host.nodes[name].state == "running"


def _sentence_of(host: HostModel, name: str) -> str:
    node = host.nodes.get(name)
    if node is None:
        return f"node {name} is unknown: the observer has never seen its ring"
    text = f"{node.role or 'node'} {name} {_STATE_TEXTS[node.state]}"
    if node.state in ("running", "silent"):
        return f"{text}; it wrote its clock {node.age_s:.1f} s ago, expected less than {SILENT_S:g} s"
    return text
