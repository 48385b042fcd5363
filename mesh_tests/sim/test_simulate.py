"""What does `amqpmesh simulate` find, and is it the same in every process?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mesh.commands.cli import cli
from mesh.simulation.convergence import WatchedMesh
from mesh.simulation.plan import random_topology
from mesh.simulation.traffic import SimConsumer, SimFlow, SimProducer
from mesh.terminal.exit_codes import ExitCode
from mesh_tests.programs import IMPORT_PATH
from wire.message import Message

TOPOLOGIES = Path(__file__).parents[2] / "topologies"
SHORT = ("--routers", "5", "--duration", "10s", "--addresses", "4")


def simulate(*options: str) -> dict[str, Any]:
    """The document; its exit code is in it."""
    done = CliRunner().invoke(cli, ["simulate", *options, "--json"])
    return {**json.loads(done.stdout), "exit_code": done.exit_code}


def in_a_process(hash_seed: int, *options: str) -> bytes:
    command = [sys.executable, "-m", "mesh", "simulate", *options]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), **IMPORT_PATH}
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout


def test_the_same_seed_prints_the_same_in_any_process() -> None:
    options = ("--routers", "5", "--duration", "24s", "--addresses", "4", "--json", "--seed", "3")
    first = in_a_process(1, *options)
    assert first == in_a_process(2, *options)
    assert first != in_a_process(1, *options[:-1], "4")


def test_people_get_tables_and_what_it_took_is_talk() -> None:
    options = ("--routers", "4", "--duration", "8s", "--faults", "cut", "--addresses", "1")
    done = CliRunner().invoke(cli, ["simulate", *options])
    assert done.exit_code == ExitCode.OK
    told = done.stdout.splitlines()
    assert [line.split()[0] for line in told if line.startswith(("AT ", "ADDRESS "))] == ["AT", "ADDRESS"]
    assert told[-1] == "the mesh kept its promises"
    assert "CPU" not in done.stdout
    assert "converged in" in done.stderr
    assert "s of CPU" in done.stderr.splitlines()[-1]


def test_what_it_took_is_in_the_document_only_on_request() -> None:
    options = ("--routers", "4", "--duration", "8s", "--faults", "cut", "--addresses", "0")
    assert "machine" not in simulate(*options)
    machine = simulate(*options, "--measure")["machine"]
    assert 0 < machine["paths_median_ms"] <= machine["paths_worst_ms"]
    assert 0 < machine["learning_median_ms"] <= machine["learning_worst_ms"]


def test_every_kind_of_fault_happens_and_every_message_is_accounted_for() -> None:
    told = simulate("--routers", "6", "--duration", "40s", "--rate", "5/s", "--addresses", "4")
    assert (told["ok"], told["exit_code"]) == (True, ExitCode.OK)
    words = {change["what"].split()[0] for change in told["changes"]}
    assert words >= {"start", "cut", "crash", "silence", "delay", "mend", "restart"}
    assert {flow["type"] for flow in told["flows"]} == {"anycast", "multicast", "queue", "topic"}
    for flow in told["flows"]:
        outcomes = ("accepted", "released", "rejected", "modified", "unknown")
        assert flow["attempted"] == sum(flow[outcome] for outcome in outcomes) > 150
        assert (flow["lost"], flow["duplicates"], flow["unanswered"]) == (0, 0, 0)


@pytest.mark.parametrize("file", ["line_3.yml", "ring_4.yml", "star_5.yml", "sharded_queue.yml"])
def test_the_example_topologies_keep_their_promises(file: str) -> None:
    told = simulate("-t", str(TOPOLOGIES / file), "--duration", "24s", "--faults", "cut,crash,broker", "--rate", "5/s")
    assert told["ok"], told
    assert len(told["flows"]) >= 2


@pytest.mark.parametrize(
    ("column", "arrivals"), [("lost", lambda _: 0), ("duplicates", lambda number: 1 + (number == 50))]
)
def test_a_message_that_is_lost_or_comes_twice_is_counted_and_fails_it(
    monkeypatch: pytest.MonkeyPatch, column: str, arrivals: Any
) -> None:
    arrive = SimFlow.on_arrival

    def distorted(flow: SimFlow, consumer: SimConsumer, message: Message) -> None:
        for _ in range(arrivals(int(message.body)) if int(message.body) == 50 else 1):
            arrive(flow, consumer, message)

    monkeypatch.setattr(SimFlow, "on_arrival", distorted)
    told = simulate(*SHORT, "--faults", "none")
    assert (told["ok"], told["exit_code"]) == (False, ExitCode.FAILED)
    assert all(flow[column] >= 1 for flow in told["flows"])


def test_a_router_with_a_wrong_picture_fails_it(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = WatchedMesh.truth

    def other(mesh: WatchedMesh) -> Any:
        graph = truth(mesh)
        if mesh.now > 1003:
            graph.remove_edge(*min(graph.edges))
        return graph

    monkeypatch.setattr(WatchedMesh, "truth", other)
    told = simulate(*SHORT, "--faults", "cut", "--every", "4s")
    assert told["exit_code"] == ExitCode.FAILED
    assert any(len(change["wrong"]) >= 5 for change in told["changes"])


def test_a_delivery_without_an_outcome_fails_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimProducer, "_hear", lambda producer: None)
    told = simulate(*SHORT, "--faults", "none")
    assert told["exit_code"] == ExitCode.FAILED
    assert all(flow["unanswered"] for flow in told["flows"])


@pytest.mark.parametrize(
    "options",
    [
        ("--routers", "5", "-t", "x.yml"),
        ("--degree", "3"),
        ("--routers", "5", "--degree", "3"),
        ("--faults", "cut,flood"),
        ("--routers", "5", "--every", "6s"),
    ],
)
def test_what_makes_no_sense_is_wrong_usage(options: tuple[str, ...]) -> None:
    assert CliRunner().invoke(cli, ["simulate", *options]).exit_code == ExitCode.USAGE


def test_a_hundred_routers_converge_within_a_second_of_a_cut_and_of_a_crash() -> None:
    mesh = WatchedMesh(random_topology(100, 4, 7).model_copy(update={"brokers": {}, "addresses": {}}))
    mesh.run(2)
    assert mesh.wrong_pictures() == []
    for break_it in (lambda: mesh.cut_trunk(*sorted(min(mesh.trunks, key=sorted))), lambda: mesh.kill("r050")):
        mesh.forget_changes()
        at = mesh.now
        break_it()
        mesh.run(1)
        seen = mesh.convergence(at)
        assert seen.wrong == ()
        assert seen.took_s is not None
        assert seen.took_s < 0.05
        assert len(mesh.changed_at) == len(mesh.routers)
