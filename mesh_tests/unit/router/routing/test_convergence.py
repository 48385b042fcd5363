"""Do all routers end up with the same, true picture, whatever happened?"""

import random

import networkx
import pytest

from mesh_tests.unit.router.routing.virtual_mesh import Cable, VirtualMesh
from router.routing.settings import RoutingSettings


def _random_mesh(chance: random.Random, count: int) -> VirtualMesh:
    mesh = VirtualMesh()
    names = [f"r{number}" for number in range(1, count + 1)]
    for name in names:
        mesh.start(name, instance=100)
    for _ in range(count * 2):  # parallel connections happen
        a, b = chance.sample(names, 2)
        mesh.connect(a, b, chance.randint(1, 3), chance.randint(1, 3), delay_s=chance.choice([0.001, 0.02, 0.15]))
    return mesh


class Schedule:
    """One thing after the other goes wrong, sometimes before the last one is over."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.mesh = _random_mesh(self.chance, self.chance.randint(3, 8))
        self.names = sorted(self.mesh.routers)
        self.instances = dict.fromkeys(self.names, 100)

    def step(self) -> None:
        self.chance.choice([self.cut, self.mend, self.silence, self.crash, self.restart, self.advertise, self.cost])()
        self.mesh.run(self.chance.choice([0.0, 0.003, 0.05, 0.5, 4.0]))

    def _cable(self) -> Cable:
        return self.chance.choice(self.mesh.cables)

    def cut(self) -> None:
        self.mesh.cut(self._cable())

    def mend(self) -> None:
        self.mesh.mend(self._cable())

    def silence(self) -> None:
        self._cable().is_silent = True

    def crash(self) -> None:
        name = self.chance.choice(self.names)
        if name in self.mesh.routers:
            self.mesh.crash(name)

    def restart(self) -> None:
        name = self.chance.choice(self.names)
        if name not in self.mesh.routers:
            # A clock may have gone back meanwhile, or not have moved at all.
            self.instances[name] += self.chance.choice([1, 1, 0, -1])
            self.mesh.start(name, self.instances[name])

    def advertise(self) -> None:
        name = self.chance.choice(self.names)
        if name in self.mesh.routers:
            keys = [f"M0a{self.chance.randint(1, 9)}" for _ in range(4)]
            self.mesh.advertise(name, keys[:2], keys[2:])

    def cost(self) -> None:
        self.mesh.change_cost(self._cable(), self.chance.randint(0, 1), self.chance.randint(1, 4))


@pytest.mark.parametrize("seed", range(60))
def test_routers_agree_within_seconds_of_any_schedule_of_faults(seed: int) -> None:
    schedule = Schedule(seed)
    for _ in range(4):
        for _ in range(12):
            schedule.step()
        # Shorter than the RA interval: nothing may depend on the safety net.
        schedule.mesh.run(9.0)
        schedule.mesh.assert_converged()


@pytest.mark.parametrize("seed", range(10))
def test_the_same_seed_gives_the_same_trace(seed: int) -> None:
    traces = []
    for _ in range(2):
        schedule = Schedule(seed)
        for _ in range(20):
            schedule.step()
        traces.append((schedule.mesh.now, schedule.mesh.sent, schedule.mesh.actions))
    assert traces[0] == traces[1]


@pytest.mark.parametrize("seed", range(10))
def test_hop_by_hop_choices_add_up_to_the_path_of_the_ingress(seed: int) -> None:
    mesh = _random_mesh(random.Random(seed), 12)
    mesh.run(3.0)
    for ingress, core in mesh.routers.items():
        for egress in core.snapshot().routers:
            walked = [ingress]
            while walked[-1] != egress:
                path = mesh.routers[walked[-1]].path(egress)
                assert path is not None
                walked.append(path[1])
            assert tuple(walked) == core.path(egress)
            assert len(set(walked)) == len(walked)


def test_a_hundred_routers_converge_after_start_and_after_a_cut() -> None:
    mesh = VirtualMesh(RoutingSettings(hello_interval_s=0.5, hello_max_age_s=1.5))
    graph = networkx.random_regular_graph(4, 100, seed=7)
    for number in sorted(graph):
        mesh.start(f"r{number:02}")
        mesh.advertise(f"r{number:02}", [f"M0own{number}", "M0shared"])
    for a, b in sorted(graph.edges):
        mesh.connect(f"r{a:02}", f"r{b:02}")
    assert mesh.run_until(mesh.is_converged, limit_s=1.0) < 0.2
    assert len(mesh.routers["r00"].routers_with("M0shared")) == 99

    mesh.sent.clear()
    mesh.cut(mesh.cables[0])
    mesh.run(0.1)
    mesh.assert_converged()
    # Two LSUs, each over every edge at most twice, and no requests.
    assert mesh.sent["LSU"] <= 2 * 2 * graph.number_of_edges()
    assert mesh.sent["LSR"] == mesh.sent["MAU"] == 0
