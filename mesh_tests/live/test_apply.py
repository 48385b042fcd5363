"""Addresses are added to a mesh of real processes, while clients go on: lost nothing, ended nothing, and it stays."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from addressing.topology.loader import load
from mesh.deploy.control import ask
from mesh.deploy.pid_file import PidFile
from mesh.deploy.revision import next_revision, read_revision
from mesh.deploy.workdir import OBSERVER, SUPERVISOR, WorkDir
from mesh.operations.change_apply import Rollout
from mesh.terminal.exit_codes import ExitCode
from mesh_tests.live.ledger import Ledger
from mesh_tests.live.wire_client import WireClient
from mesh_tests.running_mesh import AMQPMESH, RunningMesh
from mesh_tests.waiting import wait_until

WAIT_S = 60.0
TOPOLOGY = """
mesh: growing
watch: on
routers:
  r1: {listeners: [{host: 127.0.0.1}]}
  r2: {connect: [r1], listeners: [{host: 127.0.0.1}]}
brokers:
  b1: {data: ./data, routers: [r2]}
addresses:
  rpc: anycast
  prices: multicast
  orders.#: queue
"""
NODES = ("b1", "r1", "r2")


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[RunningMesh]:
    running = RunningMesh(TOPOLOGY, tmp_path)
    yield running
    running.down()


def workdir_of(mesh: RunningMesh) -> WorkDir:
    return WorkDir(mesh.control_socket(SUPERVISOR).parent.parent)


def edit(mesh: RunningMesh, **addresses: Any) -> None:
    """Declare these addresses in the file, too; None takes one out."""
    yaml = YAML()
    model = yaml.load(mesh.topology_file)
    model["addresses"].update(addresses)
    for name in [name for name, entry in model["addresses"].items() if entry is None]:
        del model["addresses"][name]
    yaml.dump(model, mesh.topology_file)


def command(mesh: RunningMesh, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [AMQPMESH, *arguments, "-t", str(mesh.topology_file)]
    return subprocess.run(line, capture_output=True, text=True, timeout=WAIT_S, check=False)


def client_command(*arguments: str) -> str:
    """The output of a command that names the URL of an address, and no topology file."""
    done = subprocess.run([AMQPMESH, *arguments], capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == ExitCode.OK, done.stderr
    return done.stdout


def round_trip(mesh: RunningMesh, queue: str, text: str) -> None:
    """A message goes to a queue at one router, and comes out at the other."""
    client_command("send", f"{mesh.url('r1')}/{queue}", "-m", text, "--timeout", "30s")
    got = client_command("receive", f"{mesh.url('r2')}/{queue}", "-c", "1", "-W", "30s", "--json")
    assert [json.loads(line)["body"] for line in got.splitlines()] == [text]


def revisions(mesh: RunningMesh) -> set[tuple[int, str]]:
    told = [ask(mesh.control_socket(name), "revision", timeout_s=WAIT_S) for name in (*NODES, SUPERVISOR)]
    return {(each["number"], each["hash"]) for each in told}


def status(mesh: RunningMesh) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(mesh.run("status", "--json"))
    return found


class Traffic:
    """A ledger for each of three addresses, from r1 to r2."""

    def __init__(self, mesh: RunningMesh, stack: ExitStack) -> None:
        self._ledgers = []
        for address in ("rpc", "prices", "orders.1"):
            consumer = stack.enter_context(WireClient(mesh.port("r2"), container_id=f"in-{address}"))
            producer = stack.enter_context(WireClient(mesh.port("r1"), container_id=f"out-{address}"))
            receiver = consumer.receiver(address, credit=50)
            self._ledgers.append(Ledger(producer, producer.sender(address), consumer, receiver))
        for ledger in self._ledgers:
            ledger.run(lambda ledger: len(ledger.received) >= 20, WAIT_S)

    def run_beside(self, process: subprocess.Popen[str]) -> None:
        """Until the process has ended, and then some more."""
        while process.poll() is None:
            for ledger in self._ledgers:
                count = len(ledger.accepted) + 5
                ledger.run(lambda ledger, count=count: len(ledger.accepted) >= count, WAIT_S)

    def check(self) -> None:
        for ledger in self._ledgers:
            count = len(ledger.accepted) + 50
            ledger.run(lambda ledger, count=count: len(ledger.accepted) >= count, WAIT_S)
            ledger.run(lambda ledger: not ledger.missing, WAIT_S, is_sending=False)
            assert set(ledger.received.values()) == {1}
            assert {outcome.name for outcome in ledger.outcomes} == {"ACCEPTED"}


def test_new_addresses_work_while_traffic_goes_on_and_are_there_when_nodes_come_back(mesh: RunningMesh) -> None:
    first = status(mesh)["revision"]
    pids = {name: mesh.pid(name) for name in NODES}
    with ExitStack() as stack:
        traffic = Traffic(mesh, stack)
        edit(mesh, invoices={"type": "queue", "dead_letter": "dead"}, dead="queue", jobs="anycast", ticks="multicast")
        observer = mesh.pid(OBSERVER)
        line = [AMQPMESH, "apply", "--json", "-t", str(mesh.topology_file)]
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as apply:
            traffic.run_beside(apply)
            told, said = apply.communicate()
        assert apply.returncode == ExitCode.OK, said
        round_trip(mesh, "invoices", "live")
        traffic.check()
    after = json.loads(told)
    assert (first["number"], after["revision"]["number"]) == (1, 2)
    assert sorted(after["added"]) == ["dead", "invoices", "jobs", "ticks"]
    assert revisions(mesh) == {(2, after["revision"]["hash"])}
    found = status(mesh)
    assert (found["revision"], found["topology_changed"]) == (after["revision"], False)
    assert {name: mesh.pid(name) for name in NODES} == pids
    for name in (*NODES, SUPERVISOR):
        events = [event for event in mesh.log(name) if event["event"] == "revision_committed"]
        assert [(event["number"], event["hash"]) for event in events] == [(2, after["revision"]["hash"])]
    wait_until(lambda: mesh.pid(OBSERVER) != observer, WAIT_S, "another observer")
    wait_until(
        lambda: "invoices" in json.dumps(mesh.observed("/api/patterns?limit=1000")[1]), WAIT_S, "the new address"
    )
    audit = [json.loads(line) for line in (workdir_of(mesh).audit / "audit.jsonl").read_text().splitlines()]
    assert [(each["operation"], each["outcome"], each["after"]["number"]) for each in audit] == [("apply", "done", 2)]
    for name in NODES:
        before = mesh.pid(name)
        mesh.kill(name)
        wait_until(lambda name=name, before=before: mesh.pid(name) != before, WAIT_S, f"another {name}")
    wait_until(lambda: all(mesh.snapshot(name) for name in NODES), WAIT_S, "all nodes to answer")
    mesh.wait_linked()
    assert revisions(mesh) == {(2, after["revision"]["hash"])}
    round_trip(mesh, "invoices", "after the kill")


def test_what_cannot_be_done_live_is_refused_with_the_fix_and_changes_nothing(mesh: RunningMesh) -> None:
    first = status(mesh)["revision"]
    for addresses, words in (
        ({"rpc": "multicast"}, "REMADE"),
        ({"orders.#": None}, "MOVED"),
        ({"orders.eu": "queue"}, "orders.eu"),
        ({"#": "anycast", "new": "queue", "prices": {"type": "multicast", "priority": 7}}, "prices"),
    ):
        text = mesh.topology_file.read_text()
        edit(mesh, **addresses)
        refused = command(mesh, "apply")
        mesh.topology_file.write_text(text)
        assert refused.returncode == ExitCode.FAILED, refused.stdout
        assert words in refused.stderr
        assert "`amqpmesh down`, then `amqpmesh up`" in refused.stderr
    assert revisions(mesh) == {(1, first["hash"])}
    assert command(mesh, "apply").stdout.startswith("growing runs revision 1 ")
    edit(mesh, jobs="anycast")
    with PidFile(workdir_of(mesh).lease_file) as lease:
        assert lease.acquire()
        held = command(mesh, "apply")
    assert (held.returncode, "process" in held.stderr) == (ExitCode.FAILED, True)
    assert "two changes at once" in held.stderr
    assert revisions(mesh) == {(1, first["hash"])}


def test_an_apply_that_was_cut_off_at_any_step_is_completed_by_the_next_one(mesh: RunningMesh) -> None:
    workdir = workdir_of(mesh)
    for count in range(len(NODES) + 2):
        edit(mesh, **{f"queue{count}": "queue"})
        loaded, before = load(mesh.topology_file), read_revision(workdir)
        assert before is not None
        revision = next_revision(before, loaded.topology)
        added = {f"queue{count}": loaded.topology.addresses[f"queue{count}"]}
        cut_off = Rollout(workdir, loaded.topology, before, revision, added)
        cut_off.begin(loaded.text)
        for name in (*NODES, SUPERVISOR)[:count]:
            cut_off.bring(name)
        if count == 1:
            mesh.kill("b1")
        if count == len(NODES) + 1:
            mesh.kill("r1")
        wait_until(lambda: all(mesh.is_up(name) and mesh.snapshot(name) for name in NODES), WAIT_S, "all nodes")
        edit(mesh, **{f"more{count}": "anycast"})
        done = command(mesh, "apply")
        assert done.returncode == ExitCode.OK, done.stderr
        assert f"completed: {revision}" in done.stderr
        now = read_revision(workdir)
        assert now is not None
        assert now.number == revision.number + 1
        assert revisions(mesh) == {now.mark}
        assert not workdir.journal_file.exists()
        round_trip(mesh, f"queue{count}", "late")


def test_a_broker_that_is_started_again_before_the_supervisor_has_the_revision_keeps_what_it_accepted(
    mesh: RunningMesh,
) -> None:
    workdir = workdir_of(mesh)
    edit(mesh, invoices="queue")
    loaded, before = load(mesh.topology_file), read_revision(workdir)
    assert before is not None
    revision = next_revision(before, loaded.topology)
    added = {"invoices": loaded.topology.addresses["invoices"]}
    cut_off = Rollout(workdir, loaded.topology, before, revision, added)
    cut_off.begin(loaded.text)
    for name in NODES:
        cut_off.bring(name)
    client_command("send", f"{mesh.url('r1')}/invoices", "-m", "kept", "--timeout", "30s")
    assert "was cut off" in command(mesh, "status").stderr
    broker = mesh.pid("b1")
    mesh.kill("b1")
    wait_until(lambda: mesh.pid("b1") != broker and mesh.is_up("b1") and mesh.snapshot("b1"), WAIT_S, "the broker")
    done = command(mesh, "apply")
    assert done.returncode == ExitCode.OK, done.stderr
    assert revisions(mesh) == {revision.mark}
    mesh.wait_linked()
    got = client_command("receive", f"{mesh.url('r2')}/invoices", "-c", "1", "-W", "30s", "--json")
    assert [json.loads(line)["body"] for line in got.splitlines()] == ["kept"]
    assert "was cut off" not in command(mesh, "status").stderr


def test_a_mesh_of_which_a_node_does_not_run_is_refused_and_one_that_nobody_started(
    mesh: RunningMesh, tmp_path: Path
) -> None:
    edit(mesh, jobs="anycast")
    with PidFile(workdir_of(mesh).hold_file("r1")) as hold:
        assert hold.acquire()
        mesh.kill("r1")
        wait_until(lambda: not mesh.is_up("r1"), WAIT_S, "the supervisor to notice")
        refused = command(mesh, "apply")
    assert (refused.returncode, "r1 does not run" in refused.stderr) == (ExitCode.FAILED, True), refused.stderr
    other = tmp_path / "other" / "amqpmesh.yml"
    other.parent.mkdir()
    other.write_text("mesh: other\nrouters: {r1: }\n")
    done = subprocess.run([AMQPMESH, "apply", str(other)], capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert (done.returncode, "does not run other here" in done.stderr) == (ExitCode.FAILED, True), done.stderr
