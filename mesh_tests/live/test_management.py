"""Requests to `$management` of a running mesh: every type and operation, pages, edges, rights, changes, and counts.

Dispatch's own tools are in no package registry, so a client sends what they send.
"""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import proton
import pytest
from proton.utils import BlockingConnection, LinkDetached

from addressing.topology.credentials import make_secret
from mesh.deploy.workdir import OBSERVER, SUPERVISOR
from mesh_tests.conftest import StartMesh
from mesh_tests.live.management_client import PREFIX, ManagementClient, assert_as_in_reference, managing, reference
from mesh_tests.live.several_hosts import SeveralHosts
from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED, RELEASED, rejected

TOPOLOGY = """
mesh: managed
watch: "on"
node_tls: false
routers:
  r1: {connect: [{to: r2, cost: 3}]}
  r2: {}
  e1: {mode: edge, connect: [r2]}
brokers:
  b1: {data: ./b1, routers: [r2]}
  b2: {data: ./b2, routers: [r2]}
addresses:
  rpc.#: {type: anycast, priority: 6}
  prices.#: multicast
  orders: {type: queue, broker: b1}
  shared: {type: queue, brokers: [b1, b2]}
"""
ROUTERS = ("r1", "r2", "e1")
NODES = (*ROUTERS, "b1")
LONG_S = 30.0
TYPES = tuple(reference())
ALWAYS_EMPTY = {PREFIX + name for name in ("logStats", "allocator", "vhost", "vhostStats")}


def wait_managed(mesh: RunningMesh, *routers: str) -> None:
    """Until the observer has links to the routers."""

    def answers(router: str) -> bool:
        try:
            with managing(mesh.url(router)) as client:
                return bool(client.query("router"))
        except LinkDetached:
            return False

    for router in routers:
        wait_until(lambda router=router: answers(router), LONG_S, f"management at {router}")  # type: ignore[misc]


@pytest.fixture(scope="module")
def mesh(start_module_mesh: StartMesh) -> RunningMesh:
    started = start_module_mesh(TOPOLOGY)
    wait_managed(started, *ROUTERS)
    return started


@pytest.fixture(scope="module")
def clients(mesh: RunningMesh) -> Iterator[tuple[WireClient, WireClient]]:
    """A producer at r1 and a consumer at r2, of each address."""
    with WireClient(mesh.port("r1")) as producer, WireClient(mesh.port("r2")) as consumer:
        addresses = ("rpc.tea", "prices.tea", "orders", "shared")
        for address in addresses:
            consumer.receiver(address, credit=5)
            producer.send_when_due(producer.sender(address))
        wait_with((producer, consumer), lambda: len(consumer.arrived) == len(addresses), "a delivery of each address")
        for each in consumer.arrived:
            each.settle(ACCEPTED)
        consumer.step()
        yield producer, consumer


def counts(mesh: RunningMesh, router: str, address: str) -> dict[str, Any]:
    with managing(mesh.url("r1"), f"_topo/0/{router}/$management") as client:
        found = {each["name"]: each for each in client.query("router.address")}
        return found.get(f"M0{address}", {})


# Types and attributes
@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("type_", TYPES)
def test_every_type_has_the_attributes_of_the_reference_with_their_types(
    mesh: RunningMesh, clients: tuple[WireClient, WireClient], node: str, type_: str
) -> None:
    with managing(mesh.url("r1"), f"amqp:/_topo/0/{node}/$management") as client:
        found = client.query(type_)
        for entity in found:
            assert_as_in_reference(type_, entity)
        if type_ in ALWAYS_EMPTY:
            assert found == []
        answered = client.call("QUERY", {"attributeNames": []}, entityType=type_)
        assert list(answered["attributeNames"]) == list(reference()[type_])


def test_every_type_that_is_not_always_empty_has_an_entity_somewhere(
    mesh: RunningMesh, clients: tuple[WireClient, WireClient]
) -> None:
    def found() -> set[str]:
        types: set[str] = set()
        for node in NODES:
            with managing(mesh.url("e1"), f"_topo/0/{node}/$management") as client:
                types |= {type_ for type_ in TYPES if client.query(type_)}
        return types

    wait_until(lambda: found() == set(TYPES) - ALWAYS_EMPTY, LONG_S, "an entity of each type")


def test_every_attribute_that_the_tools_show_is_there() -> None:
    """What qdstat of Dispatch 1.19 asks for, by type."""
    known = reference()
    for type_, names in ASKED_FOR.items():
        assert set(names.split()) <= set(known[PREFIX + type_]), type_


ASKED_FOR = {
    "router": "id version mode area workerThreads uptimeSeconds memoryUsage linkRouteCount autoLinkCount linkCount "
    "nodeCount addrCount connectionCount presettledDeliveries droppedPresettledDeliveries acceptedDeliveries "
    "rejectedDeliveries releasedDeliveries modifiedDeliveries deliveriesDelayed1Sec deliveriesDelayed10Sec "
    "deliveriesStuck deliveriesRedirectedToFallback linksBlocked deliveriesIngress deliveriesEgress deliveriesTransit "
    "deliveriesIngressRouteContainer deliveriesEgressRouteContainer",
    "router.link": "linkType linkDir connectionId identity peer owningAddr capacity undeliveredCount unsettledCount "
    "deliveryCount presettledCount droppedPresettledCount acceptedCount rejectedCount releasedCount modifiedCount "
    "deliveriesDelayed1Sec deliveriesDelayed10Sec deliveriesStuck creditAvailable zeroCreditSeconds adminStatus "
    "operStatus linkName priority settleRate",
    "router.address": "name distribution inProcess subscriberCount remoteCount containerCount deliveriesIngress "
    "deliveriesEgress deliveriesTransit deliveriesToContainer deliveriesFromContainer deliveriesRedirectedToFallback "
    "priority",
    "connection": "identity host container role protocol dir isEncrypted sslProto sslCipher isAuthenticated sasl user "
    "tenant active lastDlvSeconds uptimeSeconds",
    "router.node": "id nextHop routerLink protocolVersion cost linkState validOrigins lastTopoChange",
    "router.config.autoLink": "address direction phase externalAddress linkRef operStatus lastError",
    "router.config.linkRoute": "prefix direction distribution operStatus pattern addExternalPrefix delExternalPrefix",
    "allocator": "identity typeSize transferBatchSize localFreeListMax totalAllocFromHeap heldByThreads "
    "batchesRebalancedToThreads batchesRebalancedToGlobal",
    "policy": "maxConnections maxMessageSize enableVhostPolicy enableVhostNamePatterns policyDir defaultVhost "
    "connectionsProcessed connectionsDenied connectionsCurrent linksDenied maxMessageSizeDenied totalDenials",
    "vhost": "hostname maxConnections maxMessageSize maxConnectionsPerUser maxConnectionsPerHost allowUnknownUser "
    "groups",
    "vhostStats": "hostname connectionsApproved connectionsDenied connectionsCurrent sessionDenied senderDenied "
    "receiverDenied maxMessageSizeDenied perUserState",
}


def test_values_on_which_qdstat_computes_are_never_null(
    mesh: RunningMesh, clients: tuple[WireClient, WireClient]
) -> None:
    computed = {"router.link": ("deliveriesDelayed1Sec", "deliveriesDelayed10Sec", "zeroCreditSeconds"),
                "router.address": ("name", "priority"), "connection": ("uptimeSeconds",),
                "router": ("uptimeSeconds",), "policy": ("policyDir", "defaultVhost")}  # fmt: skip
    for node in NODES:
        with managing(mesh.url("r2"), f"_topo/0/{node}/$management") as client:
            for type_, names in computed.items():
                assert all(each[name] is not None for each in client.query(type_, *names) for name in names)


def test_a_node_is_found_from_every_router_by_each_form_of_its_address(mesh: RunningMesh) -> None:
    for at in ROUTERS:
        for node in NODES:
            for address in (
                f"_topo/0/{node}/$management",
                f"amqp:_topo/0/{node}/$management",
                f"_edge/{node}/$management",
            ):
                with managing(mesh.url(at), address) as client:
                    assert [each["id"] for each in client.query("router", "id")] == [node]
        with managing(mesh.url(at)) as client:
            assert [each["id"] for each in client.query("router", "id")] == [at]


def test_a_client_without_a_sasl_layer_sees_its_own_connection(mesh: RunningMesh) -> None:
    with managing(mesh.url("r1")) as client:
        container = client.connection.conn.container

        def mine() -> list[dict[str, Any]]:
            return [each for each in client.query("connection") if each["container"] == container]

        [own] = wait_until(mine, LONG_S, "the connection to be seen")
        assert (own["role"], own["dir"], own["sasl"], own["isAuthenticated"], own["isEncrypted"]) == (
            "normal", "in", None, False, False,
        )  # fmt: skip


# Operations
def test_get_operations(mesh: RunningMesh) -> None:
    with managing(mesh.url("r2")) as client:
        assert client.call("GET-MGMT-NODES") == [f"amqp:/_topo/0/{name}/$management" for name in ROUTERS]
        assert set(client.call("GET-TYPES")) == set(TYPES)
        assert client.call("GET-ATTRIBUTES", entityType="router.link") == {
            PREFIX + "router.link": list(reference()[PREFIX + "router.link"])
        }
        operations = client.call("GET-OPERATIONS")
        assert operations[PREFIX + "connector"] == ["READ", "UPDATE"]
        assert "QUERY" in operations["org.amqp.management"]
        assert client.call("GET-ANNOTATIONS") == {}
        schema = client.call("GET-SCHEMA")
        assert schema["entityTypes"]["router.link"]["attributes"]["capacity"]["type"] == "uint"
        assert "entityTypes" in client.call("GET-JSON-SCHEMA")
        log = client.call("GET-LOG", limit=3)
        assert len(log) == 3
        assert all(isinstance(line[0], str) and isinstance(line[5], int) for line in log)


def test_an_entity_is_read_by_identity_or_by_name(mesh: RunningMesh, clients: tuple[WireClient, WireClient]) -> None:
    with managing(mesh.url("r1")) as client:
        for type_ in TYPES:
            for each in client.query(type_)[:3]:
                read = client.call("READ", type=type_, identity=each["identity"])
                assert_as_in_reference(type_, read)
                assert read["name"] == each["name"]
        assert client.call("READ", name="r2", type=PREFIX + "connector")["cost"] == 3
        assert client.call("READ", identity="connector/r2")["host"] == "127.0.0.1"
        assert client.call("READ", type="org.amqp.management", identity="self")["type"] == "org.amqp.management"


def test_a_query_without_a_type_is_about_all_types(mesh: RunningMesh) -> None:
    with managing(mesh.url("r2")) as client:
        found = client.call("QUERY", {"attributeNames": ["type", "identity", "cost"]})
        types = {row[0] for row in found["results"]}
        assert {PREFIX + "router", PREFIX + "connector", PREFIX + "listener"} <= types


@pytest.mark.parametrize("identifier", [7, "seven", b"\x00\xff", uuid.UUID(int=7)], ids=str)
def test_the_answer_has_the_correlation_id_of_any_type(mesh: RunningMesh, identifier: Any) -> None:
    connection = BlockingConnection(mesh.url("e1"), timeout=20, sasl_enabled=False)
    receiver, sender = connection.create_receiver(None, dynamic=True), connection.create_sender("$management")
    request = proton.Message({}, reply_to=receiver.link.remote_source.address, correlation_id=identifier)
    request.properties = {"operation": "GET-MGMT-NODES"}
    sender.send(request)
    assert receiver.receive().correlation_id == identifier
    connection.close()


@pytest.mark.parametrize(
    ("operation", "properties", "status", "sentence"),
    [
        ("QUERY", {"entityType": "nonsense"}, 400, "unknown entity type 'nonsense': expected one of"),
        ("QUERY", {"entityType": 7}, 400, "entityType: expected a string, got 7"),
        ("QUERY", {"entityType": "listener", "offset": -1}, 400, "offset: expected a whole number"),
        ("QUERY", {"entityType": "listener", "count": 6000}, 400, "count: expected at most 5,000"),
        ("READ", {}, 400, "READ needs the property 'identity' or 'name'"),
        (
            "READ",
            {"type": "listener", "identity": "none"},
            404,
            "no org.apache.qpid.dispatch.listener with the identity",
        ),
        ("CREATE", {"type": "router.config.address", "name": "a"}, 501, "takes its addresses, listeners"),
        ("DELETE", {"type": "router.config.address", "name": "a"}, 501, "takes its addresses, listeners"),
        ("EXPLODE", {}, 501, "unknown operation 'EXPLODE': expected one of QUERY"),
        ("UPDATE", {"type": "connector", "name": "r2"}, 403, "may not change"),
    ],
)
def test_what_cannot_be_answered_is_said_in_a_sentence(
    mesh: RunningMesh, operation: str, properties: dict[str, Any], status: int, sentence: str
) -> None:
    with managing(mesh.url("r1")) as client:
        found = client.error(operation, **properties)
        assert (found[0], sentence in found[1]) == (status, True), found


def test_an_unknown_attribute_is_null_where_dispatch_has_null_and_an_error_elsewhere(mesh: RunningMesh) -> None:
    with managing(mesh.url("r1")) as client:
        assert client.query("router", "id", "nonsense") == [{"id": "r1", "nonsense": None}]
        assert client.error("QUERY", {"attributeNames": ["nonsense"]}, entityType="listener")[0] == 404


def test_a_node_that_the_mesh_has_not_is_404(mesh: RunningMesh) -> None:
    with managing(mesh.url("r1"), "_topo/0/r9/$management") as client:
        assert client.error("QUERY", entityType="router") == (
            404, "no node 'r9' is here: expected one of r1, r2, e1, b1, b2",
        )  # fmt: skip


# Pages
def test_pages_have_every_link_once(mesh: RunningMesh) -> None:
    count = 230
    with WireClient(mesh.port("e1")) as consumer:
        for number in range(count):
            consumer.receiver(f"rpc.page.{number}", credit=0)
        with managing(mesh.url("r1"), "_edge/e1/$management") as client:

            def all_there() -> bool:
                return len(client.query("router.address", "name", count=5000)) >= count

            wait_until(all_there, LONG_S, "all addresses")
            pages = [client.query("router.address", "name", offset=at, count=50) for at in range(0, count + 50, 50)]
            assert [len(page) for page in pages[:4]] == [50] * 4
            names = [each["name"] for page in pages for each in page]
            assert len(names) == len(set(names))
            assert {f"M0rpc.page.{number}" for number in range(count)} <= set(names)
            assert client.query("router.address", "name", offset=10_000, count=50) == []


# Truth
def test_counts_of_addresses_are_those_of_rest_and_of_the_clients(mesh: RunningMesh) -> None:
    with WireClient(mesh.port("r1")) as producer, WireClient(mesh.port("e1")) as consumer:
        consumer.receiver("rpc.truth", credit=20)
        sender = producer.sender("rpc.truth")
        outcomes = (ACCEPTED, ACCEPTED, ACCEPTED, RELEASED, rejected("amqp:not-allowed", "no"))
        for number, outcome in enumerate(outcomes):
            sent = producer.send_when_due(sender, "x")
            while len(consumer.arrived) <= number:
                producer.step()
                consumer.step()
            consumer.arrived[number].settle(outcome)
            consumer.step()
            producer.wait_outcome(sent)

        def sums() -> tuple[int, int]:
            found = [counts(mesh, router, "rpc.truth") for router in ROUTERS]
            return (
                sum(each.get("deliveriesIngress", 0) for each in found),
                sum(each.get("deliveriesEgress", 0) for each in found),
            )

        wait_until(lambda: sums() == (len(outcomes),) * 2, LONG_S, "counts as the clients had them")
        _, page = mesh.observed("/api/addresses?filter=address=rpc.truth")
        [rest] = page["items"]
        assert (rest["in_deliveries"], rest["out_deliveries"]) == sums()
        # Each node writes its sums once a second, at a time of its own.
        wait_until(
            lambda: counts(mesh, "r2", "rpc.truth")["deliveriesTransit"] == len(outcomes), LONG_S, "the sum of r2"
        )
        assert (rest["producers"], rest["consumers"]) == (1, 1)
        assert counts(mesh, "e1", "rpc.truth")["subscriberCount"] == 1
        with managing(mesh.url("r1")) as client:

            def own() -> dict[str, Any]:
                links = client.query("router.link")
                [found] = [each for each in links if each["owningAddr"] == "M0rpc.truth" and each["linkDir"] == "in"]
                return found

            counted = ("acceptedCount", "releasedCount", "rejectedCount", "deliveryCount")
            wait_until(lambda: [own()[name] for name in counted] == [3, 1, 1, 5], LONG_S, "the counts of the link")
            link = own()
            assert (link["priority"], link["linkType"], link["capacity"]) == (6, "endpoint", 1000)


# Changes
def test_an_operator_changes_costs_and_closes_connections_and_links(mesh: RunningMesh) -> None:
    with ManagementClient(f"amqp://127.0.0.1:{mesh.node_port('r1')}") as operator:
        changed = operator.call("UPDATE", {"cost": 7}, type=PREFIX + "connector", name="r2")
        assert (changed["cost"], changed["name"]) == (7, "r2")

        def costs() -> list[int]:
            return [each["cost"] for each in operator.query("connector", "cost")]

        wait_until(lambda: costs() == [7], LONG_S, "the new cost")
        assert operator.call("UPDATE", {"cost": "2"}, type="connector", identity="connector/r2")["cost"] == 2
        # The cost is set at both ends, as the larger one counts.
        wait_until(lambda: costs() == [2], LONG_S, "a lower cost than that of the topology")
        operator.call("UPDATE", {"cost": 3}, type="connector", identity="connector/r2")
        assert operator.error("UPDATE", {"cost": 0}, type="connector", name="r2") == (
            400, "r1 refused the change: cost: expected a whole number from 1 to 1000000, got 0",
        )  # fmt: skip
        assert operator.error("UPDATE", {"host": "x"}, type="connector", name="r2")[0] == 400
        doomed = WireClient(mesh.port("r1"), container_id="doomed")
        with closing(doomed.socket):
            doomed.receiver("rpc.doomed")

            def own() -> list[dict[str, Any]]:
                return [each for each in operator.query("connection") if each["container"] == "doomed"]

            def is_attached() -> bool:
                return any(each["owningAddr"] == "M0rpc.doomed" for each in operator.query("router.link"))

            wait_until(is_attached, LONG_S, "the link")
            [link] = [each for each in operator.query("router.link") if each["owningAddr"] == "M0rpc.doomed"]
            closed = operator.call("UPDATE", {"adminStatus": "deleted"}, type="router.link", identity=link["identity"])
            assert closed["adminStatus"] == "deleted"
            wait_until(
                lambda: all(each["identity"] != link["identity"] for each in operator.query("router.link")),
                LONG_S,
                "the end of the link",
            )
            identity = own()[0]["identity"]
            operator.call("UPDATE", {"adminStatus": "deleted"}, type=PREFIX + "connection", identity=identity)
            wait_until(lambda: not own(), LONG_S, "the end of the connection")
        [neighbor] = [each for each in operator.query("connection") if each["role"] == "inter-router"]
        refused = operator.error("UPDATE", {"adminStatus": "deleted"}, type="connection", identity=neighbor["identity"])
        assert "expected a connection of a client" in refused[1]
    _, audit = mesh.observed("/api/audit")
    lines = {(each["operation"], each["target"].split("/")[0], each["outcome"]) for each in audit["items"]}
    assert lines >= {
        ("cost", "r1", "done"), ("cost", "r1", "refused"),
        ("close-link", "r1", "done"), ("close-connection", "r1", "done"),
    }  # fmt: skip


def test_an_operator_sets_the_level_of_a_log(mesh: RunningMesh) -> None:
    with ManagementClient(f"amqp://127.0.0.1:{mesh.node_port('r1')}", "_topo/0/r2/$management") as operator:
        assert {each["module"]: each["enable"] for each in operator.query("log")} == {"DEFAULT": "info+"}
        changed = operator.call("UPDATE", {"enable": "debug+"}, type="log", identity="log/router.routes")
        assert (changed["module"], changed["enable"]) == ("router.routes", "debug+")
        levels = {each["module"]: each["enable"] for each in operator.query("log")}
        assert levels == {"DEFAULT": "info+", "router.routes": "debug+"}
        assert operator.error("UPDATE", {"enable": "loud"}, type="log", identity="log/DEFAULT") == (
            400, "enable: expected one of debug+, info+, warning+, error+, got 'loud'",
        )  # fmt: skip
        status, sentence = operator.error("UPDATE", {"enable": "debug+"}, type="log", identity="log/nonsense")
        assert (status, sentence.startswith("r2 refused the change")) == (400, True)
        assert (
            operator.call("UPDATE", {"enable": "info+"}, type="log", identity="log/router.routes")["enable"] == "info+"
        )


# Rights
SECRET = make_secret("pw")
CLOSED = f"""
mesh: closed
watch: "on"
routers: {{r1: {{}}}}
addresses: {{a.#: anycast, b.#: anycast}}
users:
  viv: {{password: {SECRET!r}, receive: ['#'], view: ['a.#']}}
  max: {{password: {SECRET!r}, receive: ['#'], manage: ['#']}}
  eve: {{password: {SECRET!r}, receive: ['#'], send: ['#']}}
"""


def test_each_user_sees_what_the_user_may(start_mesh: StartMesh) -> None:
    mesh = start_mesh(CLOSED)

    def log_in(user: str) -> ManagementClient:
        return ManagementClient(mesh.url("r1"), sasl_enabled=True, allowed_mechs="PLAIN", user=user, password="pw")

    def is_managed() -> bool:
        try:
            with log_in("max"):
                return True
        except LinkDetached:
            return False

    wait_until(is_managed, LONG_S, "management")
    with pytest.raises(LinkDetached, match="user 'eve' may not manage the mesh"):
        log_in("eve")
    consumer = BlockingConnection(mesh.url("r1"), timeout=20, allowed_mechs="PLAIN", user="eve", password="pw")
    receivers = [consumer.create_receiver(address) for address in ("a.1", "b.1")]
    with log_in("max") as manager, log_in("viv") as viewer:
        wait_until(lambda: len(manager.query("router.address")) == 2, LONG_S, "both addresses")
        assert [each["name"] for each in viewer.query("router.address")] == ["M0a.1"]
        everybody = {"eve", "max", "viv"}
        wait_until(
            lambda: {each["user"] for each in manager.query("connection")} >= everybody, LONG_S, "all connections"
        )
        assert {each["user"] for each in viewer.query("connection")} == {"viv"}
        assert all(each["owningAddr"].startswith("L") for each in viewer.query("router.link"))
        assert [each["pattern"] for each in viewer.query("router.config.address")] == ["a.#"]
        assert viewer.query("router")[0]["addrCount"] == 2
        assert viewer.error("GET-LOG")[0] == 403
        assert len(manager.call("GET-LOG", limit=1)) == 1
        [eve] = [each for each in manager.query("connection") if each["user"] == "eve"]
        status, sentence = viewer.error(
            "UPDATE", {"adminStatus": "deleted"}, type="connection", identity=eve["identity"]
        )
        assert (status, "or you may not see it" in sentence) == (404, True)
        manager.call("UPDATE", {"adminStatus": "deleted"}, type="connection", identity=eve["identity"])
        wait_until(lambda: "eve" not in {each["user"] for each in manager.query("connection")}, LONG_S, "eve's end")
    assert len(receivers) == 2
    with suppress(proton.ProtonException):
        consumer.close()


# Several hosts
SPREAD = """
mesh: spread
routers:
  r1: {connect: [r2]}
  r2: {}
brokers:
  b1: {routers: [r2]}
addresses: {rpc: anycast}
"""


def test_nodes_of_other_hosts_answer_by_their_own_observer(tmp_path: Path) -> None:
    """The host of the broker has no router: its observer is connected to one of another host."""
    mesh = SeveralHosts(SPREAD, {"h1": ("r1",), "h2": ("r2",), "h3": ("b1",)}, tmp_path)
    try:
        mesh.start()

        def answer(node: str) -> tuple[int, Any]:
            with managing(f"amqp://127.0.0.1:{mesh.ports['r1']}", f"_topo/0/{node}/$management") as client:
                found = client.ask("QUERY", {"attributeNames": ["id"]}, entityType="router")
                is_ok = found.properties["statusCode"] == 200
                return found.properties["statusCode"], found.body["results"] if is_ok else None

        def is_attached() -> bool:
            with suppress(LinkDetached):
                return answer("r1")[0] == 200
            return False

        wait_until(is_attached, LONG_S, "management at r1")
        for node in ("r2", "b1", "r1"):
            wait_until(lambda node=node: answer(node) == (200, [[node]]), LONG_S, node)  # type: ignore[misc]
        mesh["h3"].kill(OBSERVER)
        wait_until(lambda: answer("b1")[0] == 504, LONG_S, "that nobody answers for b1")
        wait_until(lambda: answer("r2") == (200, [["r2"]]), LONG_S, "r2 without b1")
        mesh["h3"].start(OBSERVER)
        wait_until(lambda: answer("b1") == (200, [["b1"]]), LONG_S, "b1 again")
        mesh["h2"].kill("r2")
        wait_until(lambda: answer("r2")[0] in (503, 504), LONG_S, "that r2 is lost")
    finally:
        mesh.down()


# Loss
def test_without_an_observer_a_client_is_told_and_with_the_next_one_it_is_served_again(start_mesh: StartMesh) -> None:
    mesh = start_mesh("mesh: alone\nwatch: 'on'\nrouters: {r1: {}}\n")
    wait_managed(mesh, "r1")
    observer, supervisor = mesh.pid(OBSERVER), mesh.pid(SUPERVISOR)
    # Nobody starts another observer while the supervisor stands still.
    os.kill(supervisor, signal.SIGSTOP)
    try:
        os.kill(observer, signal.SIGKILL)

        def refusal() -> str:
            try:
                with managing(mesh.url("r1")):
                    return ""
            except LinkDetached as error:
                return str(error)

        assert "no observer reads this node" in wait_until(refusal, LONG_S, "the refusal")
    finally:
        os.kill(supervisor, signal.SIGCONT)
    wait_managed(mesh, "r1")
