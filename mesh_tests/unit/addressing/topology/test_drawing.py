"""Drawings of topologies; those of the examples are compared in topologies/README.md."""

from itertools import pairwise

import pytest

from addressing.topology.drawing import draw_topology
from addressing.topology.loader import parse_topology


def shape(routers: str, rest: str = "") -> list[str]:
    """Return the picture of the routers, without the margin and the tables."""
    lines = draw_topology(parse_topology(f"mesh: m\nrouters: {routers}\n{rest}")).splitlines()
    return [line.removeprefix("    ") for line in lines[2 : lines.index("routers") - 1]]


def test_a_single_router_is_drawn_as_its_name() -> None:
    assert shape("{r1: }") == ["r1"]


def test_a_line_is_drawn_from_one_end_to_the_other_in_any_order_of_the_file() -> None:
    assert shape("{mid: {connect: [left, {to: right, cost: 12}]}, left: , right: }") == [
        "left ──1── mid ──12── right",
    ]


def test_a_ring_is_drawn_with_the_connection_that_closes_it() -> None:
    assert shape("{a: {connect: [b]}, b: {connect: [c]}, c: {connect: [{to: a, cost: 7}]}}") == [
        "a ──1── b ──1── c",
        "│               │",
        "╰───────7───────╯",
    ]


def test_brokers_stand_at_the_routers_they_are_attached_to() -> None:
    picture = shape("{a: {connect: [b]}, b: }", "brokers: {b1: {data: x, routers: [b]}, b2: {data: y}}")
    assert picture == ["a ──1── b[b1]"]


def test_any_other_graph_is_drawn_as_a_tree_with_the_rest_beside_it() -> None:
    assert shape("{a: {connect: [b, c, d]}, b: {connect: [{to: c, cost: 3}, e]}, c: , d: , e: }") == [
        "a",
        "├──1── b   (also to c at cost 3)",
        "│      └──1── e",
        "├──1── c   (also to b at cost 3)",
        "└──1── d",
    ]


def test_parts_that_are_not_connected_are_drawn_apart() -> None:
    assert shape("{a: {connect: [b]}, b: , c: }") == ["a ──1── b", "", "c"]


def test_a_line_too_long_for_a_row_is_drawn_all_the_same() -> None:
    names = [f"r{i}" for i in range(1500)]
    routers = ", ".join(f"{a}: {{connect: [{b}]}}" for a, b in pairwise(names))
    assert len(shape(f"{{{routers}, {names[-1]}: }}")) == 1500


def test_an_address_is_listed_with_its_fallback_and_what_is_not_usual() -> None:
    text = draw_topology(
        parse_topology(
            "mesh: m\nrouters: {r1: }\nbrokers: {b1: {data: x}}\n"
            "addresses: {q: queue, a: {type: anycast, fallback: q}, b: {type: multicast, priority: 9},\n"
            "  c: {type: anycast, retransmit: true}, d: {type: topic, subscription_expiry_s: 86400, fill_to: true}}\n"
        )
    )
    assert text.splitlines()[-5:] == [
        "    q  queue      on b1",
        "    a  anycast    balanced, fallback q",
        "    b  multicast  priority 9",
        "    c  anycast    balanced, retransmitted",
        "    d  topic      on b1, subscriptions expire after 86,400 s, fills in 'to'",
    ]


def test_plain_text_between_nodes_is_pointed_out() -> None:
    text = draw_topology(parse_topology("mesh: m\nnode_tls: false\nrouters: {r1: }\n"))
    assert text.splitlines()[0] == "mesh m: 1 router; plain text between nodes"


@pytest.mark.parametrize("secret", ["hunter2", "SCRAM"])
def test_a_drawing_shows_no_secrets(secret: str) -> None:
    password = "SCRAM-SHA-256$4096:c2FsdA==$" + "A" * 43 + "=:" + "A" * 43 + "="
    topology = parse_topology(
        "mesh: m\nrouters: {r1: {listeners: [{host: '::', port: 7000}]}}\n"
        f"brokers: {{b1: {{url: 'amqp://u:hunter2@h'}}}}\nusers: {{a: {{password: '{password}', send: '#'}}}}\n"
    )
    text = draw_topology(topology)
    assert secret not in text
    assert "amqp://[::]:7000 (authentication required)" in text
    assert "amqp://u@h:5672" in text


def test_what_a_user_may_see_and_change_is_shown_beside_what_it_may_send_and_receive() -> None:
    text = draw_topology(
        parse_topology("mesh: m\nrouters: {r1: }\nusers: {a: {send: x}, b: {view: ['#'], manage: [c.#, d]}}\n")
    )
    assert [line.split() for line in text.splitlines()[-2:]] == [
        ["a", "send:", "x", "receive:", "nothing"],
        ["b", "send:", "nothing", "receive:", "nothing", "view:", "#", "manage:", "c.#", "d"],
    ]


def test_an_edge_is_drawn_in_brackets_at_the_uplink_that_it_prefers() -> None:
    assert shape(
        "{r1: {connect: [r2]}, r2: , r3: {connect: [r2]}, e: {mode: edge, connect: [{to: r2, cost: 3}, r1]}}"
    ) == [
        "r2   (also to e at cost 3)",
        "├──1── r1",
        "│      └──1── (e)   (also to r2 at cost 3)",
        "└──1── r3",
    ]
