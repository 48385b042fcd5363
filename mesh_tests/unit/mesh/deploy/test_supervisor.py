"""The supervisor, with nodes that are no processes: what it does when they come up, die and leave."""

import asyncio
import io
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from mesh.client.errors import TimedOut
from mesh.deploy import supervisor as module
from mesh.deploy.log_rotation import LogLimits
from mesh.deploy.mesh_status import MeshPhase, MeshStatus, NodeState
from mesh.deploy.node_kind import NodePlan
from mesh.deploy.node_kinds import BROKER, ROUTER
from mesh.deploy.supervisor import Supervisor
from mesh.deploy.workdir import OBSERVER, WRITER, WorkDir
from mesh.terminal.failure import CommandFailed
from wire.log import EventLog

PLAN = (NodePlan("b1", BROKER), NodePlan("r1", ROUTER), NodePlan("r2", ROUTER))
DEATH = 9
TOPOLOGY = 77


class FakeNode:
    """Runs until it is stopped or killed; answers unless it is ``mute``."""

    mute: frozenset[str] = frozenset()
    all: dict[str, "FakeNode"]
    stopped: list[str]

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        _log: Path,
        descriptors: Sequence[int] = (),
        log_limits: LogLimits | None = None,
    ) -> None:
        self.arguments = arguments
        self.descriptors = descriptors
        self.name = name
        self.pid: int | None = None
        self.starts = 0
        self.ran_s = 0.0
        self.end = asyncio.Event()
        self.started = asyncio.Event()
        self.started_again = asyncio.Event()
        FakeNode.all[name] = self

    async def start(self) -> None:
        self.starts += 1
        self.started.set()
        if self.starts > 1:
            self.started_again.set()
        self.pid = self.starts
        self.end = asyncio.Event()

    async def wait(self) -> int:
        await self.end.wait()
        self.pid = None
        return DEATH

    async def stop(self) -> None:
        FakeNode.stopped.append(self.name)
        self.end.set()
        self.pid = None

    def death_sentence(self, exit_code: int) -> str:
        return f"{self.name} died of {exit_code}"


class FakeReadiness:
    def __init__(self) -> None:
        self.linked = asyncio.Event()
        self.linked.set()

    async def wait_linked(self) -> None:
        await self.linked.wait()

    async def wait_probed(self) -> None: ...

    def missing(self) -> str:
        return "r1 does not hear r2"


class Scene:
    def __init__(self, folder: Path, *, is_kept: bool = False, is_watched: bool = False) -> None:
        self.seen: list[MeshStatus] = []
        self.stop = asyncio.Event()
        self.changed = asyncio.Event()
        self.readiness = FakeReadiness()
        log = EventLog("supervisor", stream=io.StringIO())
        told = self.readiness, self.observe, log
        self.supervisor = Supervisor(
            "m",
            folder / "m.yml",
            WorkDir(folder),
            PLAN,
            *told,
            topology_fd=TOPOLOGY,
            is_kept=is_kept,
            is_watched=is_watched,
        )

    def observe(self, status: MeshStatus) -> None:
        self.seen.append(status)
        self.changed.set()

    async def reach(self, holds: Callable[[MeshStatus], bool]) -> None:
        async with asyncio.timeout(10):
            while not (self.seen and holds(self.seen[-1])):
                self.changed.clear()
                await self.changed.wait()


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(path: Path, _op: str) -> Any:
        if path.stem in FakeNode.mute:
            raise ConnectionRefusedError
        return {}

    monkeypatch.setattr(module, "NodeProcess", FakeNode)
    monkeypatch.setattr(module, "ask_async", answer)
    monkeypatch.setattr(FakeNode, "all", {}, raising=False)
    monkeypatch.setattr(FakeNode, "stopped", [], raising=False)


def play(story: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(story())


def is_ready(status: MeshStatus) -> bool:
    return status.phase is MeshPhase.READY


def test_ready_comes_after_links_and_probes_and_routers_stop_before_brokers(tmp_path: Path) -> None:
    async def story() -> None:
        scene = Scene(tmp_path)
        running = asyncio.create_task(scene.supervisor.run(scene.stop, timeout_s=10))
        await scene.reach(is_ready)
        scene.stop.set()
        assert await running
        phases = list(dict.fromkeys(status.phase for status in scene.seen))
        assert phases == [
            MeshPhase.STARTING,
            MeshPhase.LINKING,
            MeshPhase.PROBING,
            MeshPhase.READY,
            MeshPhase.STOPPING,
            MeshPhase.STOPPED,
        ]
        assert FakeNode.stopped[-1] == "b1"
        assert all(node.state is NodeState.DOWN for node in scene.seen[-1].nodes)

    play(story)


def test_a_death_before_ready_fails_the_start_with_its_cause_and_stops_the_others(tmp_path: Path) -> None:
    async def story() -> None:
        scene = Scene(tmp_path)
        scene.readiness.linked.clear()
        running = asyncio.create_task(scene.supervisor.run(scene.stop, timeout_s=10))
        await scene.reach(lambda status: status.phase is MeshPhase.LINKING)
        FakeNode.all["r1"].end.set()
        with pytest.raises(CommandFailed, match="r1 died of 9"):
            await running
        assert scene.seen[-1].phase is MeshPhase.FAILED
        assert set(FakeNode.stopped) == {"b1", "r2"}

    play(story)


def test_a_death_after_ready_is_healed_with_back_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Backoff", lambda: type("Never", (), {"on_exit": lambda self, death: 0.0})())

    async def story() -> None:
        scene = Scene(tmp_path)
        running = asyncio.create_task(scene.supervisor.run(scene.stop, timeout_s=10))
        await scene.reach(is_ready)
        for count in (1, 2):
            FakeNode.all["r2"].end.set()
            await scene.reach(
                lambda status, count=count: (  # type: ignore[misc]
                    status.nodes[2].restarts == count and status.nodes[2].state is NodeState.UP
                )
            )
        assert FakeNode.all["r2"].starts == 3
        assert FakeNode.all["r1"].starts == 1
        assert any(node.detail == "r2 died of 9" for status in scene.seen for node in status.nodes)
        scene.stop.set()
        assert await running

    play(story)


def test_the_timeout_says_what_was_missing(tmp_path: Path) -> None:
    async def story() -> None:
        scene = Scene(tmp_path)
        scene.readiness.linked.clear()
        with pytest.raises(TimedOut, match=r"not ready after 0.2 s: r1 does not hear r2"):
            await scene.supervisor.run(scene.stop, timeout_s=0.2)

    play(story)


def test_the_timeout_names_nodes_that_do_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeNode, "mute", frozenset({"r1", "b1"}))

    async def story() -> None:
        scene = Scene(tmp_path)
        with pytest.raises(TimedOut, match="b1, r1 not started"):
            await scene.supervisor.run(scene.stop, timeout_s=0.2)

    play(story)


def test_a_patient_supervisor_forgives_early_deaths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Backoff", lambda: type("Never", (), {"on_exit": lambda self, death: 0.0})())

    async def story() -> None:
        scene = Scene(tmp_path)
        scene.readiness.linked.clear()
        running = asyncio.create_task(scene.supervisor.run(scene.stop, timeout_s=0.01, is_patient=True))
        await scene.reach(lambda status: status.phase is MeshPhase.LINKING)
        FakeNode.all["r1"].end.set()
        await scene.reach(lambda status: status.nodes[1].restarts == 1)
        scene.stop.set()
        assert not await running

    play(story)


def test_the_writer_of_link_logs_runs_beside_the_nodes_and_stops_last(tmp_path: Path) -> None:
    async def story() -> None:
        scene = Scene(tmp_path, is_kept=True)
        running = asyncio.create_task(scene.supervisor.run(scene.stop, timeout_s=10))
        await scene.reach(is_ready)
        assert "linklogs write --topology" in " ".join(FakeNode.all[WRITER].arguments)
        assert WRITER not in {node.name for node in scene.seen[-1].nodes}
        scene.stop.set()
        assert await running
        assert FakeNode.stopped == ["r1", "r2", "b1", WRITER]

    play(story)


def test_a_writer_that_dies_fails_no_start_and_comes_back(tmp_path: Path) -> None:
    async def story() -> None:
        scene = Scene(tmp_path, is_kept=True)
        scene.readiness.linked.clear()
        running = asyncio.create_task(scene.supervisor.run(scene.stop, timeout_s=10))
        await scene.reach(lambda status: status.phase is MeshPhase.LINKING)
        writer = FakeNode.all[WRITER]
        writer.end.set()
        scene.readiness.linked.set()
        await scene.reach(is_ready)
        async with asyncio.timeout(10):
            await writer.started_again.wait()
        scene.stop.set()
        assert await running

    play(story)


def test_a_mesh_that_records_nothing_has_no_writer(tmp_path: Path) -> None:
    async def story() -> None:
        scene = Scene(tmp_path)
        running = asyncio.create_task(scene.supervisor.run(scene.stop, timeout_s=10))
        await scene.reach(is_ready)
        assert WRITER not in FakeNode.all
        scene.stop.set()
        assert await running

    play(story)


def test_the_observer_starts_once_the_mesh_is_ready_comes_back_and_stops_first(tmp_path: Path) -> None:
    async def story() -> None:
        scene = Scene(tmp_path, is_kept=True, is_watched=True)
        observer = FakeNode.all[OBSERVER]
        scene.readiness.linked.clear()
        running = asyncio.create_task(scene.supervisor.run(scene.stop, timeout_s=10))
        await scene.reach(lambda status: status.phase is MeshPhase.LINKING)
        assert not observer.started.is_set()
        scene.readiness.linked.set()
        async with asyncio.timeout(10):
            await observer.started.wait()
            observer.end.set()
            await observer.started_again.wait()
        assert OBSERVER not in {node.name for node in scene.seen[-1].nodes}
        scene.stop.set()
        assert await running
        assert FakeNode.stopped == [OBSERVER, "r1", "r2", "b1", WRITER]

    play(story)


def test_each_node_has_the_topology_of_the_start_and_the_writer_has_it_not(tmp_path: Path) -> None:
    Scene(tmp_path, is_kept=True)
    writer = FakeNode.all.pop(WRITER)
    assert not writer.descriptors
    for name, node in FakeNode.all.items():
        words = " ".join(node.arguments)
        assert f"node {name} --topology {tmp_path}/m.yml --topology-fd {TOPOLOGY}" in words
        assert node.descriptors == [TOPOLOGY]
