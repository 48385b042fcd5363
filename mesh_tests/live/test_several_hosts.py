"""The observers of three hosts: each shows the whole mesh; what is lost is unknown, with its age, until it is back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mesh.deploy.workdir import OBSERVER
from mesh_tests.live.several_hosts import SeveralHosts
from mesh_tests.live.wire_client import WireClient
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED

TOPOLOGY = """
mesh: spread
routers:
  r1: {connect: [r2, r3]}
  r2: {connect: [r3]}
  r3: {}
brokers:
  b1: {routers: [r2]}
addresses:
  work/#: anycast
  kept/#: queue
"""
HOSTS = {"h1": ("r1",), "h2": ("r2", "b1"), "h3": ("r3",)}
RUNNING = dict.fromkeys(("r1", "r2", "b1", "r3"), "running")
UNKNOWN = dict.fromkeys(("r2", "b1"), "unknown")
LONG_S = 30.0


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[SeveralHosts]:
    mesh = SeveralHosts(TOPOLOGY, HOSTS, tmp_path)
    try:
        mesh.start()
        yield mesh
    finally:
        mesh.down()


def items(mesh: SeveralHosts, host: str, path: str) -> list[dict[str, Any]]:
    """The rows of all hosts. On a busy machine, one of them may be late with its answer, and so be missing at first."""

    def whole() -> Any:
        page = mesh[host].observed(path)
        assert "items" in page, page
        return page if page["missing"] == [] else None

    found: list[dict[str, Any]] = wait_until(whole, LONG_S, f"no host to be missing in {path}")["items"]
    return found


def states_of_lines(mesh: SeveralHosts, host: str) -> set[str]:
    return {line["state"] for line in mesh[host].observed("/console/map")["lines"]}


def test_each_observer_shows_the_nodes_links_and_sums_of_all_hosts_and_counts_clients_once(mesh: SeveralHosts) -> None:
    for host in HOSTS:
        mesh.wait_states(host, RUNNING)
    with WireClient(mesh.ports["r1"], container_id="maker") as one, WireClient(mesh.ports["r3"]) as other:
        other.receiver("work/1", credit=50)
        senders = [one.sender("work/1"), other.sender("work/1")]
        for client, sender, count in ((one, senders[0], 20), (other, senders[1], 10)):
            for number in [client.send_when_due(sender) for _ in range(count)]:
                wait_settled(client, number, other)
        for host in HOSTS:
            wait_until(lambda host=host: sums(mesh, host) == (30, 30, 2, 1), LONG_S, "30 to be counted")
            links = items(mesh, host, "/api/links?filter=role=producer&fields=node,address")
            assert [(each["node"], each["address"]) for each in links] == [("r1", "work/1"), ("r3", "work/1")]
            clients = items(mesh, host, "/console/clients")
            assert [(each["container"], each["connections"]) for each in clients] == [("by-hand", 1), ("maker", 1)]
            of_one = items(mesh, host, "/api/links?node=r3&filter=role=producer")
            assert [each["node"] for each in of_one] == ["r3"]
            assert mesh[host].observed(f"/api/links/{of_one[0]['id']}")["deliveries"] == 10
            assert {each["node"] for each in items(mesh, host, "/api/neighbors")} == {"r1", "r2", "r3"}
            wait_until(lambda host=host: mesh[host].observed("/healthz/mesh")["ok"], LONG_S, "a whole mesh")
            boxes = mesh[host].observed("/console/map")["boxes"]
            assert {box["name"]: box["state"] for box in boxes if "name" in box} == RUNNING
            wait_until(lambda host=host: states_of_lines(mesh, host) == {"up"}, LONG_S, "all connections")
        own = mesh["h1"].observed("/api/links?scope=host&fields=node")["items"]
        assert {each["node"] for each in own} == {"r1"}


def wait_settled(client: WireClient, number: int, consumer: WireClient) -> None:
    def is_settled() -> bool:
        consumer.step()
        consumer.settle_all()
        client.step()
        return client.outcomes.get(number) == ACCEPTED

    wait_until(is_settled, LONG_S, "an outcome")


def sums(mesh: SeveralHosts, host: str) -> tuple[Any, ...]:
    address = next((each for each in items(mesh, host, "/api/addresses?filter=address=work/1")), None)
    if address is None:
        return ()
    return address["in_accepted"], address["out_accepted"], address["producers"], address["consumers"]


def test_nodes_are_unknown_while_their_observer_is_killed_and_known_once_it_is_back(mesh: SeveralHosts) -> None:
    mesh.wait_states("h1", RUNNING)
    mesh["h2"].kill(OBSERVER)
    mesh.wait_states("h1", RUNNING | UNKNOWN)
    nodes = {each["id"]: each for each in mesh["h1"].observed("/api/nodes")["items"]}
    assert "nobody answers at _amqpmesh/observe/" in nodes["r2"]["unknown_because"]
    assert nodes["r2"]["in_rate"] is None
    before = nodes["r2"]["age_s"]
    wait_until(
        lambda: node(mesh, "h1", "r2")["age_s"] > before + 1.0, LONG_S, "the age to grow while nobody can tell"
    )  # fmt: skip

    def page_without_h2() -> Any:
        page = mesh["h1"].observed("/api/links")
        return page if [set(each["nodes"]) for each in page["missing"]] == [{"r2", "b1"}] else None

    page = wait_until(page_without_h2, LONG_S, "only h2 to be missing")
    assert page["missing"][0]["host"] == nodes["r2"]["host"]
    assert page["missing"][0]["age_s"] > 0
    assert page["items"]
    assert {each["node"] for each in page["items"]} == {"r1", "r3"}
    one = mesh["h1"].observed("/api/connections/r2/1")
    assert "nobody can tell of connection 'r2/1' now" in one["error"]
    health = mesh["h1"].observed("/healthz/mesh")
    assert not health["ok"]
    assert any("with nodes" in sentence and "r2" in sentence for sentence in health["sentences"])

    def map_without_h2() -> Any:
        drawn = mesh["h1"].observed("/console/map")
        lacking = [each["subject"] for each in drawn["troubles"] if each["kind"] == "unknown"]
        return drawn if lacking == ["b1", "r2"] else None

    drawn = wait_until(map_without_h2, LONG_S, "only nodes of h2 to be unknown")
    # r2 hears its neighbors, as these say: nothing of it is missing.
    assert {line["state"] for line in drawn["lines"] if "b1" not in line["id"]} == {"up"}
    mesh["h2"].start(OBSERVER)
    mesh.wait_states("h1", RUNNING)
    assert items(mesh, "h1", "/api/links")


def node(mesh: SeveralHosts, host: str, name: str) -> dict[str, Any]:
    return next(each for each in mesh[host].observed("/api/nodes")["items"] if each["id"] == name)


def test_a_node_that_is_killed_is_lost_at_each_observer(mesh: SeveralHosts) -> None:
    for host in HOSTS:
        mesh.wait_states(host, RUNNING)
    mesh["h2"].kill("b1")
    for host in HOSTS:
        mesh.wait_states(host, RUNNING | {"b1": "lost"})
    troubles = mesh["h3"].observed("/console/map")["troubles"]
    assert [each["subject"] for each in troubles if each["kind"] == "lost"] == ["b1"]
    mesh["h2"].start("b1")
    for host in HOSTS:
        mesh.wait_states(host, RUNNING)


def test_a_whole_host_that_is_killed_is_unknown_and_no_page_of_the_others_waits_for_it(mesh: SeveralHosts) -> None:
    mesh.wait_states("h1", RUNNING)
    mesh.wait_states("h3", RUNNING)
    mesh["h2"].kill()
    for host in ("h1", "h3"):
        mesh.wait_states(host, RUNNING | UNKNOWN)
        wait_until(
            lambda host=host: (
                [set(each["nodes"]) for each in mesh[host].observed("/api/patterns")["missing"]] == [{"r2", "b1"}]
            ),
            LONG_S,
            "only h2 to be missing",
        )
    mesh["h2"].start()
    for host in HOSTS:
        mesh.wait_states(host, RUNNING)


def test_an_observer_that_is_stopped_in_order_says_so(mesh: SeveralHosts) -> None:
    mesh.wait_states("h1", RUNNING)
    mesh["h3"].programs[OBSERVER].stop()
    mesh.wait_states("h1", RUNNING | {"r3": "unknown"})
    assert node(mesh, "h1", "r3")["unknown_because"] == "its observer was stopped"


def test_an_observer_without_any_router_shows_its_own_host_and_why_nothing_else(mesh: SeveralHosts) -> None:
    for name in ("h1", "h2", "h3"):
        mesh[name].kill(HOSTS[name][0])
    mesh.wait_states("h2", {"r1": "unknown", "r2": "lost", "b1": "running", "r3": "unknown"})
    wait_until(
        lambda: "has no connection to a router" in node(mesh, "h2", "r1")["unknown_because"], LONG_S, "the reason"
    )
    for name in ("h1", "h2", "h3"):
        mesh[name].start(HOSTS[name][0])
    mesh.wait_states("h2", RUNNING)


def told_by_status(mesh: SeveralHosts, host: str) -> tuple[int, dict[str, str], dict[str, str]]:
    """The exit code, and by node the state and the detail."""
    asked = mesh.authority if host == "authority" else mesh[host]
    done = asked.run("status", "--json")
    nodes = json.loads(done.stdout)["nodes"]
    shown = asked.run("status").stdout
    assert all(node["state"] in shown for node in nodes)
    return done.returncode, {each["name"]: each["state"] for each in nodes}, {
        each["name"]: each["detail"] for each in nodes
    }  # fmt: skip


def wait_told(mesh: SeveralHosts, host: str, code: int, states: dict[str, str]) -> dict[str, str]:
    """Until `status` tells this, and the details by node. An answer that is late on a busy machine is unknown."""

    def details() -> dict[str, str] | None:
        *told, found = told_by_status(mesh, host)
        return found if told == [code, states] else None

    return wait_until(details, 2 * LONG_S, f"status of {host} to tell {states}")


def test_status_shows_the_whole_mesh_from_any_machine_with_an_observer_or_without(mesh: SeveralHosts) -> None:
    for host in HOSTS:
        mesh.wait_states(host, RUNNING)
    up = dict.fromkeys(RUNNING, "up")
    for host in (*HOSTS, "authority"):
        wait_told(mesh, host, 0, up)
    # Without an observer of its own, h1 asks over the mesh.
    mesh["h1"].kill(OBSERVER)
    wait_told(mesh, "h1", 0, up)
    details = wait_told(mesh, "h3", 0, up | {"r1": "unknown"})
    assert "nobody answers at" in details["r1"]
    mesh["h2"].kill("b1")
    mesh.wait_states("h3", RUNNING | {"b1": "lost", "r1": "unknown"})
    for host, own in (("h1", "up"), ("h3", "unknown")):
        details = wait_told(mesh, host, 1, up | {"b1": "down", "r1": own})
        assert "lost: the process failed" in details["b1"]
    mesh["h2"].kill()
    mesh["h3"].kill()
    details = wait_told(mesh, "h1", 0, dict.fromkeys(RUNNING, "unknown") | {"r1": "up"})
    assert details["r2"] == "no observer has told of it"
    mesh["h1"].kill()
    nothing = mesh["h1"].run("status")
    assert nothing.returncode == 69
    assert "no node of mesh spread runs here" in nothing.stderr


def test_each_observer_changes_nodes_of_other_hosts_and_their_audits_say_so(mesh: SeveralHosts) -> None:
    for host in HOSTS:
        mesh.wait_states(host, RUNNING)
    with WireClient(mesh.ports["r1"]) as client:
        sender = client.sender("kept/jobs")
        for number in [client.send_when_due(sender) for _ in range(12)]:
            wait_settled(client, number, client)
    for asked in ("h1", "h3"):
        wait_until(lambda asked=asked: queues(mesh, asked), LONG_S, "the queue")
    id_ = queues(mesh, "h1")[0]["id"]
    shown = mesh["h1"].observed(f"/api/queues/{id_}/messages?limit=4")
    first = [each["number"] for each in shown["messages"]]
    assert len(first) == 4
    body = {"up_to": first[-1], "expect": {"address": "kept/jobs"}}
    counted = mesh["h3"].changed(f"/api/queues/{id_}/purge?dry_run=true", body, "counted")
    assert counted["would"] == {"messages": 4, "at_most": False}
    for asked in ("h1", "h3", "h2"):
        assert mesh[asked].changed(f"/api/queues/{id_}/purge", body, "one-key")["done"] == {"messages": 4}
    assert mesh["h3"].changed("/api/neighbors/r1/r2/cost", {"cost": 7}, "cost")["done"]["cost_before"] == 1
    for asked in HOSTS:
        wait_until(lambda asked=asked: costs(mesh, asked) == [7, 7], LONG_S, "the cost at both routers")
    at_broker = [each for each in mesh["h2"].observed("/api/audit?operation=purge")["items"] if "asked_at" in each]
    assert [(each["outcome"], each["done"]) for each in at_broker if each["outcome"] == "done"] == [
        ("done", {"messages": 4})
    ]
    h2 = node(mesh, "h1", "b1")["host"]
    assert mesh["h1"].observed(f"/api/audit?operation=purge&host={h2}")["items"] == (
        mesh["h2"].observed("/api/audit?operation=purge")["items"]
    )  # fmt: skip
    # Nobody is left who could make the change, and nothing was changed: that is certain.
    mesh["h2"].kill(OBSERVER)
    status, said = mesh["h1"].change(f"/api/queues/{id_}/purge", body, "another-key")
    assert status == 502
    assert said["error"].startswith("nothing was changed: no observer takes changes of b1")
    assert "is_uncertain" not in said


def costs(mesh: SeveralHosts, host: str) -> list[int]:
    """The costs of the connection of r1 and r2 at both."""
    found = items(mesh, host, "/api/neighbors")
    return [each["cost"] for each in found if {each["node"], each["neighbor"]} == {"r1", "r2"}]


def queues(mesh: SeveralHosts, host: str) -> list[dict[str, Any]]:
    return items(mesh, host, "/api/queues?filter=address=kept/jobs&filter=depth>=8")
