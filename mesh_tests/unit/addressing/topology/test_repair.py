"""Several mistakes in one file: each is reported, whatever else is wrong; what only follows from another is not."""

from __future__ import annotations

from copy import deepcopy
from itertools import combinations
from random import Random
from typing import Any

import pytest
from ruamel.yaml import YAML

from addressing.errors import ConfigError, TopologyErrors
from addressing.topology.loader import parse_topology

HEAD = "mesh: m\nrouters: {r1: , r2: }\nbrokers: {b1: {data: b1}, b2: {data: b2}}\n"


def errors_of(text: str) -> tuple[ConfigError, ...]:
    try:
        parse_topology(text, file="mesh.yml")
    except TopologyErrors as found:
        return found.errors
    return ()


def codes_in(text: str) -> list[str]:
    return [error.code for error in errors_of(text)]


# Key and value of one entry, and what is wrong with them whatever the other keys are.
MISTAKES: dict[str, dict[str, tuple[Any, str]]] = {
    "routers": {
        "port": (70000, "AM106"),
        "host": ("", "AM106"),
        "prot": (7000, "AM101"),
        "listeners": ([5672, {"port": 1, "max_links": 0}], "AM106"),
        "connect": (["r2", "r2"], "AM202"),
    },
    "brokers": {
        "port": ("x", "AM105"),
        "routers": (["r2", "r9"], "AM103"),
        "hostname": ("h", "AM303"),
        "tls": ({"cipher": "x"}, "AM101 AM303"),
        "data": ("./other", "AM304"),
        "color": ("red", "AM101"),
    },
    "addresses": {
        "broker": ("b7", "AM104"),
        "priority": (10, "AM106"),
        "distribution": ("closet", "AM106 AM405"),
        "fallback": ("q", "AM405"),
        "subscription_expiry_s": (60, "AM405"),
        "fill_to": (True, "AM405"),
        "brokr_address": (7, "AM101"),
    },
    "users": {
        "password": ("hunter2", "AM501"),
        "send": (["a#"], "AM401"),
        "receive": (5, "AM105"),
        "sned": ("a", "AM101"),
    },
}


PAIRS = [(section, *pair) for section, mistakes in MISTAKES.items() for pair in combinations(mistakes, 2)]


@pytest.mark.parametrize(("section", "first", "second"), PAIRS)
def test_two_mistakes_in_one_entry_are_both_reported(section: str, first: str, second: str) -> None:
    topology: dict[str, Any] = {
        "mesh": "m",
        "routers": {"r1": {}, "r2": {}},
        "brokers": {"b1": {"data": "b1"}, "other": {"data": "other"}},
        "addresses": {"a": {"type": "queue", "broker": "b1"}, "q": {"type": "queue", "broker": "b1"}},
        "users": {"u": {}},
    }
    entry = topology[section][{"routers": "r1", "brokers": "other", "addresses": "a", "users": "u"}[section]]
    if section == "brokers":
        topology["brokers"] = {"first": {"data": "./other"}, "other": {**entry, "data": "mine"}}
        topology["addresses"] = {}
        entry = topology["brokers"]["other"]
    entry |= {key: MISTAKES[section][key][0] for key in (first, second)}
    expected = " ".join(MISTAKES[section][key][1] for key in (first, second)).split()
    assert sorted(codes_in(dump(topology))) == sorted(expected)


def dump(data: dict[str, Any]) -> str:
    from io import StringIO

    out = StringIO()
    YAML(typ="safe", pure=True).dump(data, out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mehs: m\nrouters: {r1: }\n", ["AM101"]),
        ("mesh: m\nroutres: {r1: , r2: {connect: [r1]}}\n", ["AM101"]),
        (HEAD.replace("brokers", "brokres") + "addresses: {a: {type: queue, broker: b1}}\n", ["AM101"]),
        (HEAD + "addresses: {a: {tpye: anycast}}\n", ["AM101"]),
        ("mesh: m\nrouters: {r1: }\nbrokers: {b1: {dta: ./x}}\n", ["AM101"]),
        ("mesh: m\nbrokers: {b1: {data: x, routers: [r1]}}\n", ["AM102"]),
        ("mesh: !name m\nrouters: {r1: }\n", ["AM008"]),
        (HEAD + "addresses: {a: {type: topik, distribution: closest}}\n", ["AM106"]),
        (HEAD + "addresses: {a: {type: anycast, fallback: q}, q: {type: queu, broker: b1}}\n", ["AM106"]),
        (HEAD + "default_broker: 5\naddresses: {a: queue}\n", ["AM105"]),
        ("mesh: m\nrouters: {r1: {port: x}, r2: {port: 26671}}\n", ["AM105"]),
        ("mesh: m\nrouters: {r1: {listeners: [{port: x}, 5672]}}\n", ["AM105"]),
        ("mesh: m\nrouters: {r1: {host: 5, listeners: [5672]}, r2: {listeners: [5672]}}\n", ["AM105"]),
        ("mesh: m\nrouters: {r1: {listeners: [{authentication: required}]}}\nusers: {a: 5}\n", ["AM105"]),
        ("mesh: m\nrouters: {r1: }\nbrokers: {b1: {data: 5}}\n", ["AM105"]),
        (HEAD + "brokers: {b3: {data: b3}}\naddresses: {a: {type: queue, broker: b3}}\n", ["AM005"]),
        (HEAD + "addresses: {a: anycast}\naddresses: {a: multicast}\n", ["AM005"]),
        ("mesh: m\nrouters: {r1: {cost: 5}}\n", ["AM101"]),
    ],
)
def test_what_follows_from_a_mistake_is_not_reported(text: str, found: list[str]) -> None:
    assert codes_in(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mesh: m\nroutres: {r1: {lisetners: [{prot: 70000}], conect: [r9]}}\n", "AM101 AM101 AM101 AM106 AM101 AM103"),
        (HEAD + "adresses: {a: {tpye: queue, broker: b7}, 'b*': anycast}\n", "AM101 AM101 AM104 AM401"),
        ("mesh: m\nrouters: {}\nbrokers: {r-1: {data: x, prot: x}}\n", "AM106 AM101"),
        ("mesh: m\nrouters: {-x: {connect: [r9]}}\n", "AM107 AM103"),
        (HEAD + "addresses: {a: !x {type: queue}, b: {type: topic, broker: b9}}\n", "AM403 AM104"),
        (HEAD + "addresses: {a: {<<: 5, broker: b9}, b: {broker: b8}}\n", "AM008 AM104 AM102 AM104"),
    ],
)
def test_what_stands_below_a_mistake_is_reported_with_it(text: str, found: str) -> None:
    assert codes_in(text) == found.split()


def test_what_is_below_a_misspelt_key_is_shown_where_it_stands() -> None:
    errors = errors_of("mesh: m\nroutres:\n  r1:\n    conect:\n      - r9\n")
    assert [(error.line, error.col, error.code) for error in errors] == [
        (2, 1, "AM101"),
        (4, 5, "AM101"),
        (5, 9, "AM103"),
    ]


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (
            HEAD + "addresses: {a: {type: anycast, fallback: a}}",
            "the topology has no free queue: declare one, 'a.waiting: queue', and write 'fallback: a.waiting'.",
        ),
        (
            HEAD + "addresses: {q: {type: queue, broker: b1}, a.b: {type: anycast, fallback: q.#}}",
            "name a queue, such as 'fallback: q', or declare one, 'a.b.waiting: queue', "
            "and write 'fallback: a.b.waiting'.",
        ),
        (
            HEAD + "addresses: {a: {type: queue, brokers: [b1, b2, b1]}}",
            "write 'brokers: [b1, b2]'.",
        ),
        (
            HEAD + "addresses: {a: {type: queue, broker: b1, brokers: [b2]}}",
            "keep 'brokers: [NAME, NAME]' for a queue on several brokers, 'broker: NAME' for one; remove the other.",
        ),
        (
            HEAD + "addresses: {a.*: {type: queue, broker: b1, broker_address: x}}",
            "remove it, or declare one address with it: 'a.x: {type: queue, broker_address: NAME}'.",
        ),
        (
            "mesh: two words\nrouters: {r1: }",
            "write 'two-words', for example, and change references to the old name, too.",
        ),
        ("mesh: m\nrouters: {all: }", "write 'all-1', for example, and change references to the old name, too."),
        (HEAD + "users: {'a b@c': }", "write 'a-b@c', for example, and change references to the old name, too."),
        ("mesh: m\nrouters: {r1: {port: 70000}}", "write a number from 1 to 65535."),
        ("mesh: m\nrouters: {r1: {listeners: [{max_links: 0}]}}", "write a number, 1 or more."),
        (HEAD + "addresses: {a: topik}", "write 'topic', or another of the allowed words."),
        ("mesh: m\nrouters: {}", "add a router: 'routers: {r1: {listeners: [5672]}}'."),
    ],
)
def test_a_fix_says_what_to_write(text: str, fix: str) -> None:
    assert [error.fix for error in errors_of(text)] == [fix]


@pytest.mark.parametrize("name", ["a.waiting", "two-words", "all-1"])
def test_what_a_fix_says_may_be_written(name: str) -> None:
    assert parse_topology(f"mesh: {name}\nrouters: {{{name}: }}\naddresses: {{{name}: anycast}}\n").mesh == name


WHOLE = """\
mesh: m
routers:
  r1: {host: 127.0.0.1, port: 7000, listeners: [5672, {tls: {cert: c, key: k}}], connect: [r2, {to: r3, cost: 2}]}
  r2: {listeners: [{port: 5673, tls: true}]}
  r3:
brokers:
  b1: {data: ./b1, routers: [r1]}
  b2: {url: "amqp://h", tls: {ca: x}, address_prefix: /q}
addresses:
  q: {type: queue, brokers: [b1, b2]}
  a: {type: anycast, fallback: store, priority: 3}
  store: {type: queue, broker: b1}
  p.#: multicast
users: {u: {send: [a, q], receive: q}}
default_broker: b1
"""
JUNK = (None, 5, -1, "x", "", [], {}, [None], ["x", 5], {"y": 1}, {"to": {}}, True, 1.5)


@pytest.mark.parametrize("seed", range(300))
def test_whatever_is_broken_is_told_and_nothing_else_happens(seed: int) -> None:
    random = Random(seed)
    data = YAML(typ="safe", pure=True).load(WHOLE)
    for _ in range(random.randint(1, 4)):
        damage(data, random)
    errors = errors_of(dump(data))
    assert not errors or any(error.severity == "error" for error in errors)
    assert len({str(error) for error in errors}) == len(errors)


def damage(data: Any, random: Random) -> None:
    """Put something wrong in place of a value or a key, anywhere."""
    while True:
        places = list(data) if isinstance(data, dict) else list(range(len(data)))
        if not places:
            return
        place = random.choice(places)
        if not isinstance(data[place], dict | list) or random.random() < 0.4:
            break
        data = data[place]
    if isinstance(data, dict) and random.random() < 0.4:
        data[f"{place}x"] = data.pop(place)
    else:
        data[place] = deepcopy(random.choice(JUNK))
