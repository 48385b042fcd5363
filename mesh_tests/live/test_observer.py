"""The observer of a running mesh: what it shows of real nodes, kills of nodes and of itself, users, a port in use."""

from __future__ import annotations

import os
import signal
import socket
from typing import Any

import pytest

from addressing.topology.credentials import make_secret
from mesh.deploy.workdir import OBSERVER, SUPERVISOR
from mesh_tests.conftest import StartMesh
from mesh_tests.live.wire_client import WireClient
from mesh_tests.programs import Program
from mesh_tests.running_mesh import AMQPMESH, RunningMesh
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED

TOPOLOGY = """
mesh: observed
watch: "on"
routers: {r1: {connect: [r2]}, r2: {}}
brokers: {b1: {data: ./data}}
addresses: {work/#: anycast, kept/#: queue}
"""
LONG_S = 30.0


@pytest.fixture
def mesh(start_mesh: StartMesh) -> RunningMesh:
    return start_mesh(TOPOLOGY)


def items(mesh: RunningMesh, path: str) -> list[dict[str, Any]]:
    status, found = mesh.observed(path)
    assert status == 200, found
    listed: list[dict[str, Any]] = found["items"]
    return listed


def pattern(mesh: RunningMesh, name: str) -> dict[str, Any]:
    return next(each for each in items(mesh, "/api/patterns") if each["pattern"] == name)


def send(mesh: RunningMesh, address: str, count: int) -> None:
    with WireClient(mesh.port("r1")) as client:
        sender = client.sender(address)
        for number in [client.send_when_due(sender) for _ in range(count)]:
            assert client.wait_outcome(number) == ACCEPTED


def test_nodes_links_and_queues_are_there_and_counts_are_those_of_the_clients(mesh: RunningMesh) -> None:
    wait_until(lambda: {each["state"] for each in items(mesh, "/api/nodes")} == {"running"}, LONG_S, "all nodes")
    assert {each["id"]: each["role"] for each in items(mesh, "/api/nodes")} == {
        "r1": "router", "r2": "router", "b1": "broker",
    }  # fmt: skip
    with WireClient(mesh.port("r1")) as producer, WireClient(mesh.port("r2")) as consumer:
        consumer.receiver("work/1", credit=50)
        sender = producer.sender("work/1")
        numbers = [producer.send_when_due(sender) for _ in range(20)]
        consumer.wait_arrived(20)
        consumer.settle_all()
        for number in numbers:
            producer.wait_outcome(number)
        wait_until(lambda: pattern(mesh, "work/#")["in_accepted"] == 20, LONG_S, "20 to be counted")
        # Each node writes its sums once a second, at a time of its own.
        wait_until(lambda: pattern(mesh, "work/#")["out_accepted"] == 20, LONG_S, "20 to be counted at r2")

        def address() -> tuple[Any, ...]:
            [row] = items(mesh, "/api/addresses?filter=address=work/1")
            return row["pattern"], row["producers"], row["consumers"], row["in_deliveries"]

        def producers() -> list[tuple[str, int]]:
            path = "/api/links?filter=role=producer&filter=address=work/1&fields=deliveries,node"
            return [(each["node"], each["deliveries"]) for each in items(mesh, path)]

        wait_until(lambda: address() == ("work/#", 1, 1, 20), LONG_S, "the address")
        wait_until(lambda: producers() == [("r1", 20)], LONG_S, "the producer")
    wait_until(lambda: not items(mesh, "/api/addresses?filter=address=work/1"), LONG_S, "the address to be idle")
    assert pattern(mesh, "work/#")["in_accepted"] == 20
    send(mesh, "kept/1", 5)
    wait_until(lambda: [each["depth"] for each in items(mesh, "/api/queues")] == [5], LONG_S, "the queue's depth")
    # The broker's records and those of the router are read one after the other.
    wait_until(lambda: pattern(mesh, "kept/#")["in_accepted"] == 5, LONG_S, "5 to be counted")


def test_a_killed_node_is_back_and_no_count_falls(mesh: RunningMesh) -> None:
    send(mesh, "kept/1", 5)
    wait_until(lambda: pattern(mesh, "kept/#")["in_accepted"] == 5, LONG_S, "5 to be counted")
    before = items(mesh, "/api/nodes?filter=name=r1")[0]
    mesh.kill("r1")
    wait_until(lambda: items(mesh, "/api/nodes?filter=name=r1")[0]["started_at"] > before["started_at"], LONG_S, "r1")
    wait_until(lambda: mesh.is_up("r1"), LONG_S, "r1 to be up")
    send(mesh, "kept/1", 5)
    wait_until(lambda: pattern(mesh, "kept/#")["in_accepted"] == 10, LONG_S, "10 to be counted")

    def of_node() -> dict[str, Any] | None:
        [row] = items(mesh, "/api/nodes?filter=name=r1")
        return row if (row["ingress_accepted"] or 0) >= 10 else None

    after = wait_until(of_node, LONG_S, "10 to be counted of the node")
    assert after["counted_since"] == before["counted_since"]


def test_an_observer_that_is_killed_is_back_with_the_same_counts(mesh: RunningMesh) -> None:
    send(mesh, "kept/1", 5)
    wait_until(lambda: pattern(mesh, "kept/#")["in_accepted"] == 5, LONG_S, "5 to be counted")
    pid = mesh.pid(OBSERVER)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: mesh.pid(OBSERVER) != pid, LONG_S, "another observer")

    def is_back() -> bool:
        try:
            return pattern(mesh, "kept/#")["in_accepted"] == 5
        except OSError:
            # The file still has the URL of the observer that was killed.
            return False

    wait_until(is_back, LONG_S, "the counts to be back")
    assert [each["died"] for each in mesh.log(SUPERVISOR) if each["event"] == "node_died"] == [OBSERVER]


def test_once_the_mesh_has_users_the_observer_wants_the_token_of_its_owner(start_mesh: StartMesh) -> None:
    mesh = start_mesh(f'''
mesh: guarded
watch: "on"
routers: {{r1: }}
addresses: {{work: anycast}}
users:
  alice: {{password: "{make_secret("hers")}", send: [work]}}
''')  # fmt: skip
    assert mesh.observed("/api")[0] == 401
    token = mesh.control_socket("r1").with_name("_watch.token")
    assert token.stat().st_mode & 0o777 == 0o600
    assert mesh.observed("/api", token.read_text().strip())[0] == 200
    assert mesh.observed("/api", "x" * 43)[0] == 401


def test_a_port_in_use_costs_only_the_observer(start_mesh: StartMesh) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        mesh = start_mesh(f"mesh: taken\nwatch: {port}\nrouters: {{r1: }}\nbrokers: {{b1: {{data: ./data}}}}\n"
                          "addresses: {kept: queue}\n")  # fmt: skip
        deaths = wait_until(
            lambda: [each for each in mesh.log(SUPERVISOR) if each["event"] == "node_died"], LONG_S, "a death"
        )
        assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in deaths[0]["reason"]
        send(mesh, "kept", 1)
    wait_until(lambda: (mesh.control_socket("r1").with_name("_watch.json")).exists(), LONG_S, "the observer")
    assert mesh.observed("/api")[0] == 200


def test_down_stops_the_observer_in_order(mesh: RunningMesh) -> None:
    assert mesh.observed("/api")[0] == 200
    pid = mesh.pid(OBSERVER)
    mesh.down()
    assert not os.path.exists(f"/proc/{pid}")
    assert mesh.log(OBSERVER)[-1]["event"] == "observer_stopped"
    assert not mesh.control_socket("r1").with_name("_watch.json").exists()


def test_watch_alone_tells_systemd_when_it_answers_and_a_second_one_says_who_runs(start_mesh: StartMesh) -> None:
    mesh = start_mesh("mesh: alone\nrouters: {r1: }\n")
    folder = mesh.topology_file.parent
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(folder / "notify"))
        systemd.settimeout(LONG_S)
        command = [AMQPMESH, "watch", "-t", str(mesh.topology_file)]
        observer = Program("observer", command, folder, {"NOTIFY_SOCKET": str(folder / "notify")})
        try:
            assert systemd.recv(4096).startswith(b"READY=1")
            assert [each["id"] for each in items(mesh, "/api/nodes")] == ["r1"]
            second = Program("second", command, folder)
            said = second.wait_failure(LONG_S)
            assert f"an observer of mesh alone runs here already, as process {observer.pid}" in said
        finally:
            observer.stop()
    assert '"event": "observer_stopped"' in observer.output()
