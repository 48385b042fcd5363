"""`amqpmesh broker` against brokers that run, and who gets at the address behind it."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from addressing.address import CONTROL_ADDRESS
from addressing.topology.loader import load_topology
from mesh.client.connect import connected
from mesh.client.errors import Unreachable
from mesh.client.links import LinkRefusedError
from mesh.deploy.operator import node_server
from mesh.terminal.exit_codes import ExitCode
from mesh_tests.live.wire_client import WireClient
from mesh_tests.running_mesh import AMQPMESH, RunningMesh
from mesh_tests.waiting import wait_until
from wire.terminus import Durability, Expiry
from wire.transport.certificate_files import NodeCertificate
from wire.transport.tls import Role, mesh_connector_context

COMMAND_S = 60.0
WAIT_S = 30.0

TOPOLOGY = """
mesh: control
routers:
  r1: {connect: [r2]}
  r2:
brokers:
  b1: {routers: [r2]}
  b2: {routers: [r2]}
default_broker: b1
addresses:
  orders.#: queue
  jobs: {type: queue, brokers: [b1, b2]}
  spread.#: {type: queue, brokers: [b1, b2]}
  renamed: {type: queue, broker: b2, broker_address: its.name.there}
  news.#: topic
  rpc: anycast
"""
SUBSCRIPTION = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER, "capabilities": ("topic",)}
READER = "control|reader|mine"


@pytest.fixture(scope="module")
def mesh(start_module_mesh):
    return start_module_mesh(TOPOLOGY)


def broker(mesh: RunningMesh, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [AMQPMESH, "broker", *arguments, "-t", str(mesh.topology_file)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=COMMAND_S, stdin=subprocess.DEVNULL, check=False
    )


def told(mesh: RunningMesh, *arguments: str) -> dict[str, Any]:
    done = broker(mesh, *arguments, "--json")
    assert done.returncode == ExitCode.OK, done.stdout + done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["schema"] == f"amqpmesh.broker.{arguments[0]}/1"
    return document


def send(mesh: RunningMesh, address: str, count: int) -> None:
    mesh.run("send", address, "-m", "hello", "-c", str(count))


def queues(mesh: RunningMesh, address: str) -> list[dict[str, Any]]:
    return [queue for queue in told(mesh, "list")["queues"] if queue["address"] == address]


def waiting(mesh: RunningMesh, address: str) -> int:
    return sum(queue["available_count"] for queue in queues(mesh, address))


def subscribe(mesh: RunningMesh) -> None:
    with WireClient(mesh.port("r1"), container_id="reader") as client:
        link = client.receiver("news.#", credit=0, name="mine", **SUBSCRIPTION)
        link.detach()
        client.wait(lambda: link.is_gone, "the answer to the detach")


# Every verb


def test_a_queue_is_made_filled_moved_purged_and_deleted(mesh):
    assert broker(mesh, "create", "orders.a").stderr == "b1: made queue orders.a\n"
    assert queues(mesh, "orders.a")[0]["broker"] == "b1"
    send(mesh, "orders.a", 5)
    moved = told(mesh, "move", "orders.a", "orders.b", "-c", "2")
    assert (moved["messages"], waiting(mesh, "orders.a"), waiting(mesh, "orders.b")) == (2, 3, 2)
    assert broker(mesh, "redrive", "orders.b", "--to", "orders.a").stderr == (
        "b1: moved 2 messages from orders.b to orders.a\n"
    )
    assert broker(mesh, "purge", "orders.a", "--yes").stderr == "b1: dropped 5 messages of orders.a\n"
    assert broker(mesh, "delete", "orders.a", "--yes").stderr == "b1: deleted orders.a, 0 messages in it\n"
    assert queues(mesh, "orders.a") == []


def test_what_was_moved_is_received_where_it_went_and_nowhere_else(mesh):
    send(mesh, "orders.there", 3)
    told(mesh, "move", "orders.there", "orders.here")
    mesh.kill("b1")
    mesh.run("receive", "orders.here", "-c", "3", "-W", "30s")
    assert waiting(mesh, "orders.there") == 0


def test_a_queue_is_shown_as_a_table_with_its_first_messages(mesh):
    send(mesh, "orders.shown", 3)
    lines = [line.split() for line in mesh.run("broker", "show", "orders.shown", "-n", "2").splitlines()]
    head, queue, _, *messages = lines
    assert head[:7] == ["BROKER", "ADDRESS", "KIND", "SUBSCRIBER", "OWNER", "DURABLE", "AVAILABLE"]
    assert queue[:7] == ["b1", "orders.shown", "queue", "-", "anonymous", "yes", "3"]
    assert messages[0] == [
        "BROKER",
        "ADDRESS",
        "SUBSCRIBER",
        "NUMBER",
        "STATE",
        "BYTES",
        "DELIVERED",
        "EXPIRES",
        "REASON",
        "ORIGIN",
    ]
    assert [message[4] for message in messages[1:]] == ["available", "available"]


def test_a_queue_of_two_brokers_is_looked_after_at_both(mesh):
    send(mesh, "jobs", 20)
    shown = told(mesh, "show", "jobs")["queues"]
    assert [queue["broker"] for queue in shown] == ["b1", "b2"]
    counts = {queue["broker"]: queue["available_count"] for queue in shown}
    assert sum(counts.values()) == 20
    one = told(mesh, "purge", "jobs", "--yes", "--broker", "b1")
    assert one["brokers"] == [{"broker": "b1", "address": "jobs", "messages": counts["b1"]}]
    assert told(mesh, "purge", "jobs", "--yes")["messages"] == counts["b2"]
    unclear = broker(mesh, "move", "jobs", "orders.x", "-c", "1")
    assert unclear.returncode == ExitCode.USAGE
    assert "jobs is spread over b1, b2" in unclear.stderr


def test_a_queue_that_one_of_two_brokers_has_not_made_yet_is_looked_after_at_the_other(mesh):
    assert broker(mesh, "purge", "spread.a", "--yes").returncode == ExitCode.FAILED
    told(mesh, "create", "spread.a", "--broker", "b2")
    purged = broker(mesh, "purge", "spread.a", "--yes")
    assert purged.returncode == ExitCode.OK, purged.stderr
    assert "b2: dropped 0 messages of spread.a\nb1: there is no queue 'spread.a' yet" in purged.stderr
    assert [queue["broker"] for queue in told(mesh, "show", "spread.a")["queues"]] == ["b2"]


def test_a_queue_is_called_as_the_topology_calls_it_whatever_its_name_at_the_broker(mesh):
    send(mesh, "renamed", 2)
    (queue,) = told(mesh, "show", "renamed")["queues"]
    assert (queue["broker"], queue["address"], queue["available_count"]) == ("b2", "its.name.there", 2)
    assert told(mesh, "purge", "renamed", "-y")["messages"] == 2


def test_a_subscription_is_purged_and_deleted_by_its_subscriber(mesh):
    subscribe(mesh)
    send(mesh, "news.sport", 2)
    (shown,) = told(mesh, "show", "news.sport")["queues"]
    assert (shown["subscriber"], shown["available_count"]) == (READER, 2)
    unclear = broker(mesh, "purge", "news.#", "-y")
    assert unclear.returncode == ExitCode.FAILED
    assert f"name the subscriber of a subscription, one of {READER}" in unclear.stderr
    assert told(mesh, "purge", "news.#", "-y", "--subscriber", READER)["messages"] == 2
    assert told(mesh, "delete", "news.#", "-y", "--subscriber", READER)["messages"] == 0
    assert [queue for queue in told(mesh, "list")["queues"] if queue["subscriber"] == READER] == []


def beside(client: WireClient, call: Callable[[], Any]) -> Any:
    """What ``call`` returns; the client goes on meanwhile, since it would fall silent on a busy machine."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(call)
        while not future.done():
            client.step(0.05)
    return future.result()


def test_by_force_a_client_at_another_router_loses_its_link_and_is_told_why(mesh):
    with WireClient(mesh.port("r1"), container_id="consumer") as client:
        link = client.receiver("orders.doomed", credit=10)
        client.wait(lambda: link.is_open, "the link")
        wait_until(lambda: queues(mesh, "orders.doomed"), WAIT_S, "the queue")
        refused = beside(client, lambda: broker(mesh, "delete", "orders.doomed", "--yes"))
        assert refused.returncode == ExitCode.FAILED
        assert "still has 1 consumer: expected 'force' to delete it with them" in refused.stderr
        beside(client, lambda: told(mesh, "delete", "orders.doomed", "--yes", "--force"))
        assert client.wait_detached(link).error.condition == "amqp:resource-deleted"


# Browsing, and what was seen


def test_what_was_seen_is_purged_and_what_came_later_stays(mesh):
    mesh.run("send", "orders.seen", "-m", "early", "-c", "150")
    shown = told(mesh, "browse", "orders.seen", "--bodies", "-n", "200")
    assert [message["body"]["text"] for message in shown["messages"]] == ["early"] * 150
    (page,) = shown["brokers"]
    assert page["next"] is None
    mesh.run("send", "orders.seen", "-m", "late", "-c", "3")
    assert told(mesh, "purge", "orders.seen", "--yes", "--up-to", str(page["last"]))["messages"] == 150
    late = told(mesh, "browse", "orders.seen", "--search", "late", "--bodies")["messages"]
    assert len(late) == 3
    first, second, third = (str(message["number"]) for message in late)
    assert told(mesh, "remove", "orders.seen", first, "--yes")["messages"] == 1
    assert told(mesh, "move", "orders.seen", "orders.aside", "--numbers", second)["messages"] == 1
    mesh.kill("b1")
    wait_until(lambda: broker(mesh, "list", "--broker", "b1").returncode == ExitCode.OK, 30.0, "b1 again")
    (left,) = told(mesh, "browse", "orders.seen", "--bodies")["messages"]
    assert (left["body"]["text"], left["number"] > int(third)) == ("late", True)
    assert len(told(mesh, "browse", "orders.aside")["messages"]) == 1
    assert broker(mesh, "browse", "orders.seen").stdout.splitlines()[1].split()[:3] == [
        "b1",
        str(left["number"]),
        "available",
    ]


# What cannot be done


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["purge", "orders.a"], "cannot ask for confirmation without a terminal: confirm with --yes", ExitCode.USAGE),
        (["delete", "orders.a"], "cannot ask for confirmation without a terminal: confirm with --yes", ExitCode.USAGE),
        (["list", "--broker", "b9"], "unknown broker 'b9' in mesh control: expected one of b1, b2", ExitCode.USAGE),
        (["show", "rpc"], "'rpc' is anycast: no broker keeps it", ExitCode.USAGE),
        (["show", "nowhere"], "the topology names no broker for 'nowhere'", ExitCode.USAGE),
        (["show", "nowhere", "--broker", "b1"], "b1: no queue or subscription 'nowhere'", ExitCode.FAILED),
        (["create", "news.x"], "b1: 'news.x' is a topic", ExitCode.FAILED),
        (["move", "orders.none", "orders.x"], "b1: there is no queue 'orders.none' yet", ExitCode.FAILED),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(mesh, arguments, said, code):
    refused = broker(mesh, *arguments)
    assert (refused.returncode, said in refused.stderr) == (code, True), refused.stderr


# Who is let in


def _attach(mesh: RunningMesh, certificate: NodeCertificate) -> None:
    server = node_server(load_topology(mesh.topology_file), "b1")

    async def attach() -> None:
        async with connected(replace(server, tls=mesh_connector_context(certificate)), WAIT_S) as client:
            await client.sender(CONTROL_ADDRESS)

    asyncio.run(attach())


def _certificate(pki: Path, role: Role, name: str) -> NodeCertificate:
    return NodeCertificate(pki / role / f"{name}.pem", pki / role / f"{name}-key.pem", pki / "ca.pem")


def test_a_router_is_no_operator(mesh):
    with pytest.raises(LinkRefusedError, match="only operators of the mesh may send to _amqpmesh/control"):
        _attach(mesh, _certificate(mesh.pki, Role.ROUTER, "r1"))


def test_a_client_with_a_certificate_of_the_mesh_does_not_get_in(mesh):
    mesh.run("certs", "issue", "alice")
    with pytest.raises(Unreachable):
        _attach(mesh, _certificate(mesh.pki, Role.CLIENT, "alice"))


def test_a_router_lets_no_client_through_to_it(mesh):
    with WireClient(mesh.port("r2"), container_id="curious") as client:
        assert client.wait_detached(client.sender(CONTROL_ADDRESS)).error.condition == "amqp:unauthorized-access"
