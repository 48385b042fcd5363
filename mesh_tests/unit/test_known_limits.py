"""Known limits in CHANGELOG.md are limits of the code, and the README's table names the same missing features.

Each limit has tests, here or elsewhere, or a reason why no test shows the limit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from addressing.errors import TopologyErrors
from addressing.topology.loader import parse_topology
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.unit.broker.rig import Rig
from mesh_tests.unit.wire.sasl.secrets import USERS
from wire.endpoint import EndpointSettings
from wire.sasl.server import SaslServer, SaslServerSettings

ROOT = Path(__file__).parents[2]
LIMITS = (ROOT / "CHANGELOG.md").read_text().partition("### Known limits\n")[2].partition("\n## ")[0]
MISSING, _, PRESENT = LIMITS.partition("\nRouters\n")
ENTRY = re.compile(r"^- ((?:\*\*.+?\*\*(?:, )?)+):", re.MULTILINE)

FOREIGN_PROTOCOL = "wire/sasl/test_handshake.py::test_another_protocol_is_named_and_answered_with_our_header"
UNKNOWN_KEYS = "test_known_limits.py::test_no_key_of_the_topology_asks_for_a_missing_feature"
CHECKED_BY = {
    "live change of users and settings": (
        "../live/test_apply.py::test_what_cannot_be_done_live_is_refused_with_the_fix_and_changes_nothing"
    ),
    "transactions": "test_known_limits.py::test_a_coordinator_is_refused_whichever_broker_is_the_default",
    "selectors": "broker/links/test_attachments.py::test_a_selector_is_refused_and_not_ignored",
    "scheduled delivery": "test_known_limits.py::test_a_message_is_delivered_at_once_whatever_its_annotations_say",
    "message groups": "test_known_limits.py::test_messages_of_one_group_go_to_any_consumers",
    "one filter for topics and multicast": (
        "../sim/test_wildcards.py::test_a_filter_of_topics_and_multicast_together_is_refused_with_filters_that_work"
    ),
    "replication of a store": UNKNOWN_KEYS,
    "MQTT": FOREIGN_PROTOCOL,
    "AMQP over WebSocket": FOREIGN_PROTOCOL,
    "TCP adaptors": FOREIGN_PROTOCOL,
    "tenants": UNKNOWN_KEYS,
    "LDAP": "test_known_limits.py::test_the_mechanisms_are_those_for_users_of_the_topology",
    "OAuth": "test_known_limits.py::test_the_mechanisms_are_those_for_users_of_the_topology",
    "clients that close shared connections": (
        "../sim/test_shared_connections.py::test_a_client_that_comes_back_as_another_is_under_no_suspicion"
    ),
    "durable subscribers that come back twice": (
        "../sim/test_subscriber_twice.py::test_the_older_link_may_take_the_subscription_back"
    ),
    "multicast on a lost branch": "../sim/test_multicast_again.py::test_what_another_consumer_has_is_not_sent_again",
    "strict priority": (
        "../sim/test_priority.py::test_with_a_full_connection_to_a_consumer_the_higher_priority_overtakes"
    ),
    "float of one credit": (
        "router/forwarding/test_credit_sharing.py::test_the_float_comes_back_once_what_used_it_is_settled"
    ),
    "messages on their way to a full queue": (
        "../sim/test_full_shared_queues.py"
        "::test_late_messages_are_in_doubt_once_their_path_is_lost_and_later_ones_still_arrive"
    ),
    "messages at idle consumers": "../sim/test_recall.py::test_what_waits_at_a_resting_consumer_comes_to_the_other",
    "fallback without a broker": (
        "../sim/test_fallback.py::test_without_taker_and_broker_a_delivery_is_released_after_the_path_wait"
    ),
    "paths of links to brokers": (
        "../sim/test_broker_routes.py::test_a_link_to_a_queue_stays_on_its_path_when_another_becomes_cheaper"
    ),
    "stopped routers": (
        "../sim/test_forwarding.py::test_deliveries_through_a_router_that_stops_in_order_are_in_doubt_unless_sent_again"
    ),
    "frozen brokers": "test_known_limits.py::test_a_silent_connection_to_a_broker_is_given_up_after_16_s",
    "uplinks of edge routers": (
        "../sim/test_edge_uplinks.py::test_an_uplink_that_comes_back_is_used_again_when_it_is_needed"
    ),
    "subscriptions that are not durable": (
        "../sim/test_route_rows.py::test_a_passing_subscription_does_not_outlive_a_subscriber_that"
    ),
    "links to existing brokers": (
        "../sim/test_route_limits.py::"
        "test_a_link_beyond_the_sessions_of_an_existing_broker_is_refused_at_once_with_the_true_reason"
    ),
    "filter sets of multicast addresses": (
        "../sim/test_multicast_filter_sets.py::test_a_router_advertises_a_limited_number_and_size_of_filters"
    ),
    "rights by several patterns": (
        "addressing/test_permissions.py::test_patterns_that_cover_a_filter_only_together_do_not_count"
    ),
    "filter sets that are stored or shared": (
        "broker/links/test_filter_sets.py::test_sources_that_cannot_have_a_set_are_refused"
    ),
    "durable subscriptions at Artemis": (
        "../interop/test_link_ends_at_existing_broker.py::test_only_a_close_of_the_link_deletes_a_subscription_at_artemis"
    ),
}
UNCHECKED = {
    "many links that end together": "a figure of `amqpmesh bench attaches`",
    "pre-settled messages of a fallback": "a race",
    "ends without a detach": "a race",
    "consumers that keep deliveries": "a stall by a client that has 65 links in a session, and takes credit back",
    "order on several brokers": "a race",
    "large messages to edge routers": "a race",
    "small session windows": "of the engine",
    "shared subscriptions at other brokers": "of another project",
    "large messages of Qpid JMS": "of another project",
}


def names(text: str) -> list[str]:
    return [name for entry in ENTRY.findall(text) for name in re.findall(r"\*\*(.+?)\*\*", entry)]


def test_the_readme_and_the_changelog_name_the_same_missing_features() -> None:
    table = (ROOT / "README.md").read_text().partition("| there | not yet |\n|---|---|\n")[2].partition("\n\n")[0]
    cells = [row.split("|")[2] for row in table.splitlines()]
    assert {name.strip() for cell in cells for name in cell.split(";")} == set(names(MISSING))


def test_each_limit_has_a_test_or_a_reason_without_one() -> None:
    listed = names(MISSING) + names(PRESENT)
    assert sorted(listed) == sorted({*CHECKED_BY, *UNCHECKED})
    assert LIMITS.count("\n- ") == len(ENTRY.findall(LIMITS))


@pytest.mark.parametrize("test", sorted(set(CHECKED_BY.values())))
def test_the_test_of_a_limit_exists(test: str) -> None:
    file, _, name = test.partition("::")
    tree = ast.parse((Path(__file__).parent / file).read_text())
    assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path / "data")
    yield rig
    rig.store.close()


EXISTING = {"url": "amqp://artemis.example"}
EMBEDDED = {"data": "b"}


@pytest.mark.parametrize(
    ("brokers", "default"),
    [({}, None), ({"b1": EXISTING}, None), ({"b1": EXISTING}, "b1"), ({"b1": EMBEDDED, "b2": EXISTING}, "b1")],
    ids=["no broker", "one existing", "existing by default", "embedded by default"],
)
def test_a_coordinator_is_refused_whichever_broker_is_the_default(
    tmp_path: Path, brokers: dict[str, Any], default: str | None
) -> None:
    topology = {"mesh": "m", "node_tls": False, "routers": {"r1": {}}, "brokers": brokers, "default_broker": default}
    mesh = SimMesh({**topology, "addresses": {"rpc": "anycast"}}, tmp_path)
    try:
        coordinator = mesh.client("r1").coordinator()
        mesh.run_until(lambda: coordinator.error is not None)
        assert coordinator.error.condition == "amqp:not-implemented"
    finally:
        for broker in mesh.brokers.values():
            broker.close()


def test_a_message_is_delivered_at_once_whatever_its_annotations_say(rig: Rig) -> None:
    later_ms = 4_000_000_000_000
    annotations = {"x-opt-delivery-time": later_ms, "x-opt-delivery-delay": later_ms}
    rig.client().producer("orders").send("now", annotations=annotations)
    assert rig.client().consumer("orders").bodies == ["now"]


def test_messages_of_one_group_go_to_any_consumers(rig: Rig) -> None:
    consumers = [rig.client(name).consumer("orders") for name in ("one", "two")]
    producer = rig.client().producer("orders")
    for body in range(4):
        producer.send(body, group_id="group")
    assert [len(consumer.bodies) for consumer in consumers] == [2, 2]


def test_a_silent_connection_to_a_broker_is_given_up_after_16_s() -> None:
    assert EndpointSettings("router").idle_timeout_s == 16.0


def test_the_mechanisms_are_those_for_users_of_the_topology() -> None:
    server = SaslServer(SaslServerSettings(USERS), certificate_user="alice")
    assert server.mechanisms == ("EXTERNAL", "SCRAM-SHA-256", "PLAIN", "ANONYMOUS")


@pytest.mark.parametrize(
    "wanted",
    [
        "tenants: {a: {}}",
        "spaces: [a]",
        "console: {port: 8080}",
        "brokers: {b1: {data: b, replicas: 2}}",
    ],
)
def test_no_key_of_the_topology_asks_for_a_missing_feature(wanted: str) -> None:
    with pytest.raises(TopologyErrors) as told:
        parse_topology(f"mesh: m\nrouters: {{r1: {{}}}}\naddresses: {{rpc: anycast}}\n{wanted}\n")
    assert {error.code for error in told.value.errors} == {"AM101"}
