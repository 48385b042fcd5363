"""Answers of management, made of a model: rows, pages, rights, types, and the time that a slice takes."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import proton
import pytest

from addressing.operator_rights import OWNER, Operator, OperatorRights
from addressing.topology.loader import parse_topology
from mesh.watch.management.answering import LOOKED_AT_A_SLICE, Question, answer, attributes_of, find, run
from mesh.watch.management.dispatch_entities import ALL_NAMES, BY_NAME, TYPES
from mesh.watch.management.entity_types import PREFIX, ManagedNode
from mesh.watch.management.protocol import MAX_NAMES, MAX_ROWS, ManagementError, ManagementRequest, Status
from mesh.watch.management.updates import change_of, named_module, operation_of
from mesh_tests.unit.mesh.watch.sample_host import (
    SampleHost,
    add,
    attach,
    connect,
    deliver,
    large_host,
    opened,
    small_mesh,
)
from recording.columns import RecordKind

TOPOLOGY = parse_topology("""
mesh: shop
routers: {r1: {connect: [{to: r2, cost: 3}], listeners: [5672]}, r2: {}}
brokers: {b1: {data: ./b1, routers: [r2]}, b2: {data: ./b2}}
addresses:
  rpc.#: {type: anycast, priority: 7}
  prices: multicast
  orders: {type: queue, broker: b1}
  news: {type: topic, broker: b1}
  shared: {type: queue, brokers: [b1, b2]}
users:
  viv: {view: ['rpc.#']}
  max: {manage: ['#']}
  none: {send: ['#']}
""")
RIGHTS = OperatorRights(TOPOLOGY)
LONGEST_SLICE_S = 0.05


def question(
    host: SampleHost,
    operation: str = "QUERY",
    node: str = "r1",
    operator: Operator = OWNER,
    body: Any = None,
    **properties: Any,
) -> Question:
    request = ManagementRequest("x", "c", {"operation": operation, **properties}, body or {})
    return Question(request, ManagedNode(host.model, host.model.nodes[node], TOPOLOGY), operator)


def read(data: bytes) -> proton.Message:
    message = proton.Message()
    message.decode(data)
    assert message.properties["statusCode"] == 200
    return message


def rows(
    host: SampleHost, type_: str, node: str = "r1", operator: Operator = OWNER, **properties: Any
) -> list[dict[str, Any]]:
    body = read(run(answer(question(host, "QUERY", node, operator, entityType=type_, **properties)))).body
    return [dict(zip(body["attributeNames"], row, strict=True)) for row in body["results"]]


def error_of(asked: Question) -> ManagementError:
    with pytest.raises(ManagementError) as refused:
        run(answer(asked))
    return refused.value


def test_a_query_names_at_most_so_many_attributes() -> None:
    # A request of 64 KiB may name one attribute ten thousand times: answers would have gigabytes.
    asked = {"attributeNames": ["type"] * MAX_NAMES}
    assert len(ALL_NAMES) <= MAX_NAMES
    run(answer(question(small_mesh(), body=asked, entityType="router.link")))
    asked["attributeNames"].append("type")
    refused = error_of(question(small_mesh(), body=asked, entityType="router.link"))
    assert (refused.status, str(refused)) == (400, "attributeNames: expected at most 256 names, got 257")


# Values
def test_a_router_has_the_counts_of_its_node() -> None:
    [router] = rows(small_mesh(), "router")
    assert (router["id"], router["mode"], router["uptimeSeconds"], router["memoryUsage"]) == (
        "r1",
        "interior",
        60,
        50_000_000,
    )
    assert (router["acceptedDeliveries"], router["deliveriesIngress"], router["deliveriesEgress"]) == (50, 73, 73)
    assert (router["linkCount"], router["nodeCount"], router["connectionCount"]) == (3, 2, 1)
    assert (router["linkRouteCount"], router["autoLinkCount"]) == (0, 2)


def test_addresses_have_the_counts_of_one_router() -> None:
    host = small_mesh()
    found = {node: {each["name"]: each for each in rows(host, "router.address", node)} for node in ("r1", "r2")}
    assert [found[node]["M0rpc.tea"]["deliveriesIngress"] for node in ("r1", "r2")] == [73, 5]
    assert [found[node]["M0rpc.tea"]["deliveriesEgress"] for node in ("r1", "r2")] == [73, 5]
    assert found["r1"]["M0rpc.tea"]["remoteHostRouters"] == ["r2"]
    assert (found["r1"]["M0rpc.tea"]["priority"], found["r2"]["M0orders"]["priority"]) == (7, 4)
    assert found["r2"]["M0orders"]["deliveriesIngress"] == 2


def test_what_passes_through_a_router_is_transit_and_what_a_broker_gets_is_counted() -> None:
    host = small_mesh()
    run_ = host.runs["r1"]
    add(
        run_,
        opened(RecordKind.CONNECTION, connection=5, role="router"),
        opened(RecordKind.CONNECTION, connection=6, role="broker"),
    )
    for number, role, connection in ((20, "circuit", 5), (21, "circuit", 5), (22, "broker", 6)):
        attach(run_, number, role, "orders", connection)
    deliver(run_, 20, 21, 4)
    deliver(run_, 20, 22, 3)
    deliver(run_, 22, 11, 2)
    [orders] = [each for each in rows(host, "router.address") if each["name"] == "M0orders"]
    assert (orders["deliveriesTransit"], orders["deliveriesEgressRouteContainer"]) == (4, 3)
    assert (orders["deliveriesIngressRouteContainer"], orders["containerCount"]) == (2, 1)
    [router] = rows(host, "router")
    assert (router["deliveriesTransit"], router["deliveriesEgressRouteContainer"]) == (4, 3)


def test_links_and_connections_name_each_other() -> None:
    host = small_mesh()
    links, connections = rows(host, "router.link", "r2"), rows(host, "connection", "r2")
    assert {each["connectionId"] for each in links} == {each["identity"] for each in connections} == {"1"}
    [waiting] = [each for each in links if each["owningAddr"] == "M0orders"]
    assert (waiting["zeroCreditSeconds"], waiting["creditAvailable"], waiting["deliveriesDelayed10Sec"]) == (2, 0, 2)
    assert connections[0]["user"] == "bob"


def test_queues_of_a_broker_are_there_and_routers_have_none() -> None:
    host = small_mesh()
    queues = {each["address"]: each for each in rows(host, "amqpmesh.queue", "b1")}
    assert (queues["orders"]["depth"], queues["orders"]["enqueued"], queues["orders"]["oldestSeconds"]) == (7, 20, 90)
    assert rows(host, "amqpmesh.queue", "r1") == rows(host, "router.address", "b1") == []


def test_routes_are_those_of_the_brokers_that_a_router_is_connected_to() -> None:
    host = small_mesh()
    routes = [
        (each["pattern"], each["direction"], each["containerId"], each["operStatus"])
        for each in rows(host, "router.config.linkRoute", "r2")
    ]
    assert routes == [(name, way, "b1", "inactive") for name in ("orders", "news") for way in ("in", "out")]
    links = rows(host, "router.config.autoLink", "r1")
    assert [(each["address"], each["direction"], each["phase"]) for each in links] == [
        ("shared", "in", 1), ("shared", "out", 0),
    ]  # fmt: skip


# Pages
def test_a_query_without_a_count_says_what_it_leaves_out() -> None:
    host = large_host(MAX_ROWS + 10)
    message = read(run(answer(question(host, entityType="router.link", body={"attributeNames": ["identity"]}))))
    assert len(message.body["results"]) == message.properties["count"] == MAX_ROWS
    assert message.properties["statusDescription"] == "OK: rows 1 to 5,000 of 5,010; ask for more with offset and count"
    rest = read(run(answer(question(host, entityType="router.link", offset=MAX_ROWS))))
    assert (len(rest.body["results"]), rest.properties["statusDescription"]) == (10, "OK")


def test_a_query_over_all_types_is_paged_like_one_of_a_type() -> None:
    host = small_mesh()
    names = {"attributeNames": ["type", "identity"]}
    whole = [tuple(each) for each in read(run(answer(question(host, body=names)))).body["results"]]
    pages: list[Any] = []
    for offset in range(0, len(whole) + 3, 3):
        found = read(run(answer(question(host, body=names, offset=offset, count=3)))).body["results"]
        pages += map(tuple, found)
    assert pages == whole
    assert len(whole) > 10


def test_no_slice_of_an_answer_about_100_000_addresses_holds_the_loop() -> None:
    host = large_host(100_000)
    viewer = Operator("v", RIGHTS.operator("viv").patterns)
    for asked in (
        question(host, entityType="router.address", count=MAX_ROWS, offset=90_000),
        question(host, entityType="router.link", count=500),
        question(host, entityType="router.address", operator=viewer, count=500),
        question(host, "READ", type="router.address", identity="M0p.99999"),
    ):
        steps = answer(asked)
        longest = 0.0
        while True:
            start = time.process_time()
            try:
                next(steps)
            except StopIteration:
                break
            finally:
                longest = max(longest, time.process_time() - start)
        assert longest < LONGEST_SLICE_S, (asked.request.properties, longest)


# Rights
def test_rows_are_those_that_the_user_may_view() -> None:
    host, viv = small_mesh(), RIGHTS.operator("viv")
    assert {each["name"] for each in rows(host, "router.address", "r2", viv)} == {"M0rpc.tea"}
    assert {each["pattern"] for each in rows(host, "router.config.address", "r2", viv)} == {"rpc.#"}
    assert rows(host, "router.config.linkRoute", "r2", viv) == rows(host, "amqpmesh.queue", "b1", viv) == []
    assert rows(host, "connection", "r2", viv) == rows(host, "router.link", "r2", viv) == []
    assert len(rows(host, "router.link", "r2", RIGHTS.operator("max"))) == 3
    assert len(rows(host, "router", "r2", viv)) == 1


def test_a_user_sees_its_own_connections_and_links() -> None:
    host = small_mesh()
    connect(host.runs["r1"], 2, "viv")
    attach(host.runs["r1"], 40, "producer", "orders", connection=2)
    viv = RIGHTS.operator("viv")
    assert [each["identity"] for each in rows(host, "connection", "r1", viv)] == ["2"]
    assert [each["identity"] for each in rows(host, "router.link", "r1", viv)] == ["40"]


def test_what_a_user_may_not_see_is_not_found() -> None:
    host = small_mesh()
    hidden = error_of(
        question(host, "READ", operator=RIGHTS.operator("viv"), type="router.address", identity="M0orders")
    )
    missing = error_of(
        question(host, "READ", operator=RIGHTS.operator("viv"), type="router.address", identity="M0nosuch")
    )
    assert hidden.status == missing.status == Status.NOT_FOUND
    assert str(hidden).replace("M0orders", "") == str(missing).replace("M0nosuch", "")


# Types
@pytest.mark.parametrize("type_", TYPES, ids=lambda each: str(each.name))
def test_each_attribute_has_one_name_and_a_meaning(type_: Any) -> None:
    assert len(set(type_.names)) == len(type_.names)
    assert all(each.meaning for each in type_.attributes)
    assert type_.names[:3] == ("name", "identity", "type")
    assert set(type_.updated) <= set(type_.names)


@pytest.mark.parametrize("node", ["r1", "r2", "b1"])
def test_every_entity_can_be_read_by_its_identity(node: str) -> None:
    host = small_mesh()
    for type_ in TYPES:
        for each in rows(host, type_.name, node):
            found, state = _found(question(host, "READ", node, type=type_.name, identity=each["identity"]))
            assert found is type_
            attributes = attributes_of(ManagedNode(host.model, host.model.nodes[node], TOPOLOGY), type_, state)
            assert attributes["identity"] == each["identity"]


def _found(asked: Question) -> Any:
    steps = find(asked)
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value


# Changes
def change(host: SampleHost, type_: str, identity: str, body: dict[str, Any], operator: Operator = OWNER) -> Any:
    asked = question(host, "UPDATE", operator=operator, body=body, type=type_, identity=identity)
    return change_of(asked, *(named_module(asked) or _found(asked)))


def test_a_change_becomes_a_request_to_the_node() -> None:
    host, root = small_mesh(), RIGHTS.operator("max")
    assert change(host, "connector", "connector/r2", {"cost": 9}, root).arguments == {"neighbor": "r2", "cost": 9}
    closed = change(host, "connection", "1", {"adminStatus": "deleted"}, root)
    assert (closed.op, closed.arguments["connection"], closed.arguments["operator"]) == ("close_connection", 1, "max")
    link = change(host, "router.link", "10", {"adminStatus": "deleted"}, root)
    assert (link.op, link.arguments["connection"], link.arguments["link"]) == ("close_link", 1, 10)
    level = change(host, "log", "log/router.routes", {"enable": "trace+"})
    assert (level.op, level.arguments) == ("log_level", {"module": "router.routes", "level": "debug"})
    assert change(host, "log", "log/DEFAULT", {"enable": "info+"}) is None
    assert change(host, "connection", "1", {"adminStatus": "enabled", "role": "normal"}) is None


def test_a_cost_that_the_model_has_already_is_asked_of_the_node_which_may_have_another_by_now() -> None:
    host = small_mesh()
    known = next(each["cost"] for each in rows(host, "connector") if each["identity"] == "connector/r2")
    again = change(host, "connector", "connector/r2", {"cost": known})
    assert (again.op, again.arguments) == ("cost", {"neighbor": "r2", "cost": known})
    assert change(host, "connector", "connector/b2", {"cost": None}) is None


@pytest.mark.parametrize(
    ("type_", "identity", "body", "status", "sentence"),
    [
        ("connector", "connector/r2", {"cost": "x"}, Status.BAD_REQUEST, "cost: expected a whole number, got 'x'"),
        ("connector", "connector/r2", {"cost": True}, Status.BAD_REQUEST, "cost: expected a whole number, got True"),
        ("connector", "connector/b2", {"cost": 2}, Status.BAD_REQUEST, "expected a connection between routers"),
        ("connector", "connector/r2", {"host": "x"}, Status.BAD_REQUEST, "cannot be changed: UPDATE changes cost"),
        ("connector", "connector/r2", {"color": "red"}, Status.BAD_REQUEST, "no attribute 'color': UPDATE"),
        ("connection", "1", {"adminStatus": "gone"}, Status.BAD_REQUEST, "expected 'enabled' or 'deleted', got 'gone'"),
        ("router.address", "M0rpc.tea", {"priority": 1}, Status.NOT_IMPLEMENTED, "nothing of it changes"),
        ("log", "log/DEFAULT", {"enable": 5}, Status.BAD_REQUEST, "enable: expected one of debug+"),
    ],
)  # fmt: skip
def test_a_change_that_cannot_be_is_refused(
    type_: str, identity: str, body: dict[str, Any], status: Status, sentence: str
) -> None:
    with pytest.raises(ManagementError) as refused:
        change(small_mesh(), type_, identity, body)
    assert (refused.value.status, sentence in str(refused.value)) == (status, True), str(refused.value)


def test_a_key_that_is_not_a_text_is_refused_and_not_left_out() -> None:
    host = small_mesh()
    asked = question(host, "UPDATE", operator=OWNER, body={"cost": 9}, type="connector", identity="connector/r2")
    odd = replace(asked, request=replace(asked.request, odd_keys=("7",)))
    with pytest.raises(ManagementError) as refused:
        change_of(odd, *_found(odd))
    assert refused.value.status == Status.BAD_REQUEST
    assert str(refused.value).endswith("as each key of the body, a string, got 7")


def test_each_type_that_update_changes_has_its_operation_in_the_audit() -> None:
    of_types = {type_.name: operation_of(type_) for type_ in TYPES if type_.updated}
    assert of_types == {
        f"{PREFIX}connector": "cost", f"{PREFIX}log": "log_level",
        f"{PREFIX}connection": "close_connection", f"{PREFIX}router.link": "close_link",
    }  # fmt: skip
    assert {operation_of(type_) for type_ in TYPES if not type_.updated} == {"update"}


def test_only_who_manages_the_mesh_changes_anything() -> None:
    host = small_mesh()
    for user in ("viv", "none"):
        with pytest.raises(ManagementError) as refused:
            change(host, "connector", "connector/r2", {"cost": 9}, RIGHTS.operator(user))
        assert refused.value.status is Status.FORBIDDEN


def test_types_are_known_with_and_without_the_prefix() -> None:
    host = small_mesh()
    assert rows(host, PREFIX + "listener") == rows(host, "listener")
    assert set(BY_NAME) == {each.name for each in TYPES}
    assert LOOKED_AT_A_SLICE > 1
