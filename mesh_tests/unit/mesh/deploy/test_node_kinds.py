"""A kind of node that nobody planned for is one entry of the table: everything asks the table."""

import ast
import asyncio
import io
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from addressing.topology.loader import load_topology
from addressing.topology.model import Topology
from mesh.deploy import readiness, running_processes
from mesh.deploy.mesh_status import MeshPhase, MeshStatus, NodeState
from mesh.deploy.node_files import node_files
from mesh.deploy.node_kind import NodePlan
from mesh.deploy.node_kinds import BROKER, NODE_KINDS, ROUTER, all_nodes, kind_of, node_names, plan
from mesh.deploy.node_process import NodeProcess
from mesh.deploy.node_program import check_name
from mesh.deploy.operator import node_server
from mesh.deploy.pki import make_pki, node_certificate
from mesh.deploy.probe import probes_of
from mesh.deploy.readiness import MeshReadiness, missing_links
from mesh.deploy.supervisor import Supervisor
from mesh.deploy.workdir import WorkDir
from mesh.operations import doctor, status
from mesh_tests.third_kind import GREETER
from wire.log import EventLog
from wire.transport.tls import Role

ROOT = Path(__file__).parents[4]
TOPOLOGY = """
mesh: m
routers: {r1: {port: 21, listeners: [22], connect: [r2]}, r2: {port: 23}}
brokers: {b1: {port: 24, data: ./data, routers: [r1]}, old: {url: 'amqp://h', routers: [r1]}}
x-greeters: {g1: {port: 25}, g2: {port: 26}}
"""


@pytest.fixture
def topology(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Topology:
    monkeypatch.setitem(NODE_KINDS, GREETER.name, GREETER)
    (tmp_path / "amqpmesh.yml").write_text(TOPOLOGY)
    return load_topology(tmp_path / "amqpmesh.yml")


def test_without_a_third_kind_a_mesh_is_as_before(tmp_path: Path) -> None:
    (tmp_path / "amqpmesh.yml").write_text(TOPOLOGY)
    topology = load_topology(tmp_path / "amqpmesh.yml")
    assert plan(topology) == [NodePlan("b1", BROKER), NodePlan("r1", ROUTER), NodePlan("r2", ROUTER)]
    assert node_names(topology) == topology.node_names
    assert running_processes.supervisor_grace_s() == 40


def test_nodes_start_by_rank_and_are_listed_by_the_table(topology: Topology) -> None:
    assert [node.name for node in plan(topology)] == ["b1", "r1", "r2", "g1", "g2"]
    assert node_names(topology) == ("r1", "r2", "b1", "g1", "g2")


def test_a_name_leads_to_its_kind_also_of_a_broker_that_is_not_ours(topology: Topology) -> None:
    kinds = [kind_of(topology, name) for name in ("r2", "b1", "old", "g1")]
    assert kinds == [ROUTER, BROKER, BROKER, GREETER]
    with pytest.raises(KeyError):
        kind_of(topology, "nobody")


def test_node_runs_a_node_of_any_kind_and_names_all_of_them(topology: Topology) -> None:
    check_name(topology, "g1")
    with pytest.raises(click.UsageError, match="broker 'old' is an existing broker, expected a node"):
        check_name(topology, "old")
    with pytest.raises(click.UsageError, match=r"did you mean 'g1'\? expected one of r1, r2, b1, g1, g2"):
        check_name(topology, "g11")


def test_doctor_looks_at_the_ports_of_every_kind(topology: Topology) -> None:
    assert [port for _, _, port in doctor.listening(topology)] == [21, 22, 23, 24, 25, 26]


def test_each_node_gets_the_certificate_of_its_kinds_role_and_its_own_files(topology: Topology) -> None:
    made = {certificate.name: certificate.identity for certificate in make_pki(topology)}
    assert {name: identity.role for name, identity in made.items() if identity} == {
        "r1": Role.ROUTER,
        "r2": Role.ROUTER,
        "b1": Role.BROKER,
        "g1": Role.OPERATOR,
        "g2": Role.OPERATOR,
        "operator": Role.OPERATOR,
    }
    certificate = node_certificate(topology, "g1")
    assert certificate is not None
    assert certificate.certificate == WorkDir(topology.work_dir).pki / "operator" / "g1.pem"
    assert node_files(topology, "g1").data == topology.work_dir / "g1"
    assert node_files(topology, "b1").data == topology.directory / "data"


def test_an_operator_finds_the_port_and_the_identity_of_every_kind(topology: Topology) -> None:
    make_pki(topology)
    servers = [node_server(topology, name) for name in ("r1", "b1", "g1")]
    assert [(server.port, server.expected.role) for server in servers if server.expected] == [
        (21, Role.ROUTER),
        (24, Role.BROKER),
        (25, Role.OPERATOR),
    ]


def test_a_mesh_is_ready_when_nodes_of_every_kind_are(topology: Topology, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def answer(path: Path, _op: str) -> object:
        asked.append(path.stem)
        raise ConnectionRefusedError

    monkeypatch.setattr(readiness, "ask_async", answer)
    ready = MeshReadiness(topology, WorkDir(topology.work_dir))
    assert not asyncio.run(ready._is_linked())
    assert asked == ["r1", "r2", "g1", "g2"], "a broker's snapshot shows no links of the mesh"
    assert ready.missing() == "r1 does not answer; r2 does not answer; g1 sleeps; g2 sleeps"
    assert [str(probe) for probe in probes_of(topology, "x")] == [
        "a probe from r1 to r2 on _amqpmesh/probe/x-r1",
        "a probe from r2 to r1 on _amqpmesh/probe/x-r2",
        "a probe from r2 to r2 on _amqpmesh/broker/b1/probe-x",
        "a greeting of g1",
        "a greeting of g2",
    ]
    assert list(missing_links(topology, [(NodePlan("g2", GREETER), None)])) == ["g2 sleeps"]


def test_status_shows_a_node_and_its_notes_by_its_kind(
    topology: Topology, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    views = [
        status.NodeView(node, NodeState.UP, 7, 0, "", {"greeted_count": 3, "is_awake": True})
        for node in plan(topology)
        if node.kind is GREETER
    ]
    assert [status.node_row(view)[:4] for view in views] == [
        ["g1", "polite greeter", NodeState.UP, 7],
        ["g2", "polite greeter", NodeState.UP, 7],
    ]
    assert list(GREETER.notes["tired_greeters"]("g1", views[0].snapshot)) == ["g1 is tired"]
    assert status.node_row(status.NodeView(NodePlan("b1", BROKER), NodeState.DOWN, None, 0, "", None))[1] == "broker"


class Stopping(NodeProcess):
    """A process that is none: it says in which order it and others were stopped."""

    order: list[str]

    async def start(self) -> None: ...

    @property
    def pid(self) -> int | None:
        return None if self.name in Stopping.order else 1

    async def wait(self) -> int:
        await asyncio.Event().wait()
        return 0

    async def stop(self, grace_s: float = 0.0) -> None:
        # Other nodes of the same rank stop meanwhile.
        await asyncio.sleep(0)
        Stopping.order.append(self.name)


def test_nodes_of_a_higher_rank_stop_first(topology: Topology, monkeypatch: pytest.MonkeyPatch) -> None:
    from mesh.deploy import supervisor as module

    async def answer(_path: Path, _op: str) -> object:
        return {}

    class Ready:
        async def wait_linked(self) -> None: ...
        async def wait_probed(self) -> None: ...
        def missing(self) -> str:
            return ""

    monkeypatch.setattr(module, "NodeProcess", Stopping)
    monkeypatch.setattr(module, "ask_async", answer)
    monkeypatch.setattr(Stopping, "order", [], raising=False)

    async def story() -> None:
        stop = asyncio.Event()
        seen: list[MeshStatus] = []

        def observe(now: MeshStatus) -> None:
            seen.append(now)
            if now.phase is MeshPhase.READY:
                stop.set()

        workdir = WorkDir(topology.work_dir)
        log = EventLog("supervisor", stream=io.StringIO())
        supervisor = Supervisor("m", Path("m.yml"), workdir, plan(topology), Ready(), observe, log, topology_fd=0)
        assert await supervisor.run(stop, timeout_s=10)
        assert [(node.name, node.kind) for node in seen[-1].nodes][-1] == ("g2", "greeter")

    asyncio.run(story())
    assert Stopping.order == ["g1", "g2", "r1", "r2", "b1"]


def test_down_gives_the_supervisor_time_for_nodes_of_every_rank(topology: Topology) -> None:
    assert len({node.kind.rank for node in all_nodes(topology)}) == 3
    assert running_processes.supervisor_grace_s() == 55


def test_nothing_that_deploys_shows_or_drills_nodes_asks_for_a_kind_by_name() -> None:
    packages = ("deploy", "operations", "bench", "drills", "commands")
    files = [file for package in packages for file in (ROOT / "mesh" / package).rglob("*.py")]
    assert {f"{file.relative_to(ROOT)}:{line}" for file in files for line in kinds_by_name(file)} == set()


def kinds_by_name(file: Path) -> Iterator[int]:
    """Lines in which the name of a kind is compared, or chosen by a condition."""
    for node in ast.walk(ast.parse(file.read_text())):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.IfExp):
            parts = [node.body, node.orelse]
        flat = [part for each in parts for part in (each.elts if isinstance(each, ast.Tuple | ast.Set) else [each])]
        if any(isinstance(part, ast.Constant) and part.value in NODE_KINDS for part in flat):
            yield node.lineno  # type: ignore[attr-defined]
