"""What a right topology file means: short forms, defaults, and what is derived from them."""

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from addressing.kinds import AddressKind
from addressing.topology.broker_url import parse_broker_url
from addressing.topology.loader import load_topology, parse_topology
from addressing.topology.queries import Authentication, Edge

HEAD = "mesh: m\nrouters: {r1: }\n"


def test_short_forms_mean_the_same_as_long_ones() -> None:
    short = """
mesh: m
routers:
  r1: {listeners: [5672, {tls: true}], connect: [r2]}
  r2:
brokers: {b1: {data: x, routers: r1}}
addresses: {a: anycast, q: {type: queue, brokers: b1}}
users: {u: {send: a, receive: a}}
"""
    long = """
mesh: m
node_tls: true
routers:
  r1:
    host: 127.0.0.1
    port: 26671
    listeners:
      - {host: 127.0.0.1, port: 5672, authentication: required}
      - {port: 5671, tls: {}, authentication: required}
    connect: [{to: r2, cost: 1}]
  r2: {port: 26672}
brokers: {b1: {data: ./x, port: 27671, routers: [r1]}}
addresses: {a: {type: anycast, distribution: balanced}, q: {type: queue, brokers: [b1]}}
users: {u: {send: [a], receive: [a]}}
"""
    assert parse_topology(short) == parse_topology(long)


def test_ports_of_nodes_follow_from_their_position() -> None:
    topology = parse_topology(
        "mesh: m\nrouters: {a: , b: {port: 7000}, c: }\nbrokers: {x: {url: 'amqp://h'}, y: {data: y}}\n"
    )
    assert [router.port for router in topology.routers.values()] == [26671, 7000, 26673]
    assert topology.brokers["y"].port == 27672


def test_authentication_is_required_once_there_is_a_user() -> None:
    text = "mesh: m\nrouters: {r1: {listeners: [5672, {port: 5673, authentication: none}]}}\n"
    without = parse_topology(text).routers["r1"].listeners
    with_users = parse_topology(text + "users: {a: }\n").routers["r1"].listeners
    assert [listener.authentication for listener in without] == [Authentication.NONE] * 2
    assert [listener.authentication for listener in with_users] == [Authentication.REQUIRED, Authentication.NONE]


def test_tls_may_be_true_false_or_a_mapping() -> None:
    topology = parse_topology(
        "mesh: m\nrouters: {r1: {listeners: [{tls: true}, {tls: false}, {port: 1, tls: {cert: c, key: k}}]}}\n"
    )
    own, plain, given = topology.routers["r1"].listeners
    assert own.tls is not None
    assert own.tls.cert is None
    assert own.port == 5671
    assert plain.tls is None
    assert plain.port == 5672
    assert given.tls is not None
    assert given.tls.cert == Path("c")


def test_keys_that_begin_with_x_are_ignored_but_names_are_not() -> None:
    topology = parse_topology("""
x-note: {anything: [1, 2]}
mesh: m
routers:
  x-1: {x-owner: me, listeners: [{x-why: tests}]}
addresses: {x-ray: {type: anycast, x-team: physics}}
users: {x-men: }
""")
    assert list(topology.routers) == ["x-1"]
    assert list(topology.addresses) == ["x-ray"]
    assert list(topology.users) == ["x-men"]


def test_a_key_with_nothing_after_it_counts_as_not_given() -> None:
    topology = parse_topology("mesh: m\nrouters:\n  r1:\n    listeners:\n    # - 5672\nbrokers:\nusers:\n")
    assert topology.routers["r1"].listeners == ()
    assert topology.brokers == {}


@pytest.mark.parametrize("given", ["", "hello_max_age_s:\n", "hello_max_age_s: null\n"])
def test_a_neighbor_is_dead_after_three_intervals_unless_the_file_says_otherwise(given: str) -> None:
    assert parse_topology(HEAD + "hello_interval_s: 0.2\n" + given).hello_max_age_s == pytest.approx(0.6)


def test_names_may_look_like_numbers() -> None:
    topology = parse_topology("mesh: '5'\nrouters: {1: , 2: {connect: ['1']}}\n")
    assert list(topology.edges()) == [Edge("2", "1", 1)]


def test_anchors_and_merge_keys_may_be_used() -> None:
    topology = parse_topology("""
mesh: m
x-site: &site {host: 10.0.0.1, port: 7000}
routers:
  r1: *site
  r2: {<<: *site, port: 7001}
""")
    assert [(router.host, router.port) for router in topology.routers.values()] == [
        ("10.0.0.1", 7000),
        ("10.0.0.1", 7001),
    ]


def test_one_port_may_be_used_on_different_machines() -> None:
    topology = parse_topology("""
mesh: m
routers:
  r1: {host: 10.0.0.1, port: 7000, listeners: [5672, {host: 0.0.0.0, port: 5673}]}
  r2: {host: 10.0.0.2, port: 7000, listeners: [5672, {host: 0.0.0.0, port: 5673}]}
  r3: {host: 127.0.0.2, port: 7001, connect: [r1, r2]}
  r4: {host: 127.0.0.3, port: 7001, connect: [r1]}
""")
    assert len(topology.routers) == 4


def test_a_topology_does_not_change() -> None:
    topology = parse_topology(HEAD)
    with pytest.raises(ValidationError):
        topology.mesh = "other"  # type: ignore[misc]


def test_brokers_are_attached_to_the_named_routers_or_to_all() -> None:
    topology = parse_topology(
        "mesh: m\nrouters: {r1: , r2: }\nbrokers: {b1: {data: x}, b2: {data: y, routers: [r2]}}\n"
    )
    assert topology.routers_of("b1") == ("r1", "r2")
    assert topology.routers_of("b2") == ("r2",)
    assert topology.brokers_at("r1") == ("b1",)
    assert topology.brokers_at("r2") == ("b1", "b2")


def test_amqpmesh_runs_the_routers_and_the_embedded_brokers() -> None:
    topology = parse_topology(HEAD + "brokers: {b1: {data: x}, b2: {url: 'amqp://h'}}\n")
    assert topology.node_names == ("r1", "b1")
    assert topology.brokers["b1"].is_embedded
    assert not topology.brokers["b2"].is_embedded


def test_a_queue_that_names_no_broker_is_on_the_default_or_the_only_one() -> None:
    addresses = "addresses: {q: queue, a: anycast}\n"
    only = parse_topology(HEAD + "brokers: {b1: {data: x}}\n" + addresses)
    several = parse_topology(HEAD + "brokers: {b1: {data: x}, b2: {data: y}}\ndefault_broker: b2\n" + addresses)
    assert only.brokers_of(only.addresses["q"]) == ("b1",)
    assert only.brokers_of(only.addresses["a"]) == ()
    assert several.brokers_of(several.addresses["q"]) == ("b2",)
    assert several.fallback_broker == "b2"
    assert parse_topology(HEAD).fallback_broker is None


def test_relative_paths_start_at_the_topology_file(tmp_path: Path) -> None:
    file = tmp_path / "amqpmesh.yml"
    file.write_text(HEAD + "brokers: {b1: {data: ./data}, b2: {data: /var/b2}}\ndefault_broker: b1\n")
    topology = load_topology(file)
    assert topology.locate(Path("data")) == tmp_path / "data"
    assert topology.locate(Path("/var/b2")) == Path("/var/b2")
    assert topology.work_dir == tmp_path / ".amqpmesh" / "m"


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("amqp://h", ("h", 5672, False, None, None)),
        ("amqps://h", ("h", 5671, True, None, None)),
        ("amqp://u:p%40ss@h:7000/", ("h", 7000, False, "u", "p@ss")),
        ("amqp://[::1]:7000", ("::1", 7000, False, None, None)),
    ],
)
def test_a_broker_url_is_taken_apart(url: str, parts: tuple[object, ...]) -> None:
    found = parse_broker_url(url)
    assert (found.host, found.port, found.is_tls, found.user, found.password) == parts


def test_passwords_are_not_shown_with_a_topology() -> None:
    topology = parse_topology(HEAD + "brokers: {b1: {url: 'amqp://u:hunter2@h'}}\n")
    assert "hunter2" not in repr(topology)
    assert "hunter2" not in str(topology.brokers["b1"].location)
    assert str(topology.brokers["b1"].location) == "amqp://u@h:5672"


def test_kinds_are_the_words_of_the_file() -> None:
    assert [str(kind) for kind in AddressKind] == ["anycast", "multicast", "queue", "topic", "unavailable"]


@pytest.mark.parametrize(
    "module", ["addressing", "addressing.book", "addressing.permissions", "addressing.topology.credentials"]
)
def test_what_a_node_looks_addresses_up_with_does_not_import_pydantic(module: str) -> None:
    code = f"import sys, {module}; sys.exit('pydantic' in sys.modules or 'ruamel.yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_uplinks_of_an_edge_are_in_order_of_cost_and_then_of_the_file() -> None:
    routers = "r1: , r2: , r3: , e1: {mode: edge, connect: [{to: r1, cost: 2}, r3, r2]}"
    topology = parse_topology(f"mesh: m\nrouters: {{{routers}}}\n")
    assert topology.costs_at("e1") == {"r3": 1, "r2": 1, "r1": 2}
    assert list(topology.costs_at("e1")) == ["r3", "r2", "r1"]
    assert topology.costs_at("r1") == {"e1": 2}


def test_all_interior_routers_connect_to_a_broker_that_names_none() -> None:
    topology = parse_topology("mesh: m\nrouters: {r1: , e1: {mode: edge, connect: [r1]}}\nbrokers: {b1: {data: d}}\n")
    assert topology.routers_of("b1") == ("r1",)
    assert topology.brokers_at("e1") == ()
