"""A wrong topology file: every mistake at once, each with its place, the line, and how to mend it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from addressing.codes import CODES
from addressing.errors import ConfigError, TopologyErrors
from addressing.loader import find_topology, load, load_topology, parse_topology

SECRET = "SCRAM-SHA-256$4096:c2FsdA==$" + "A" * 43 + "=:" + "A" * 43 + "="


def errors_of(text: str) -> tuple[ConfigError, ...]:
    with pytest.raises(TopologyErrors) as caught:
        parse_topology(text, file="mesh.yml")
    return caught.value.errors


def found_in(text: str) -> list[str]:
    return [f"{error.line}:{error.col} {error.code}" for error in errors_of(text)]


def test_an_error_shows_place_line_caret_suggestion_and_fix() -> None:
    text = "mesh: m\nrouters:\n  r1:\n  r2:\n    connect: [r1, r9]\n  r3: {connect: [r1]}\n"
    (error,) = errors_of(text)
    assert str(error) == (
        "mesh.yml:5:19  AM103  router 'r2': connector to unknown router 'r9'\n"
        "    5 |     connect: [r1, r9]\n"
        "      |                   ^^ did you mean 'r3'?  known: r1, r2, r3\n"
        "fix: add a router named r9, or correct the name.      amqpmesh explain AM103"
    )


def test_an_error_has_the_same_parts_as_json() -> None:
    (error,) = errors_of("mesh: m\nrouters: {r1: {conect: []}}\n")
    assert error.to_json() == {
        "file": "mesh.yml",
        "line": 2,
        "column": 16,
        "code": "AM101",
        "severity": "error",
        "message": "router 'r1': unknown key 'conect'",
        "hint": "did you mean 'connect'?  allowed: mode, host, port, listeners, connect",
        "suggestion": "connect",
        "fix": CODES["AM101"].fix,
    }


def test_the_caret_stands_under_the_value_also_after_tabs() -> None:
    (error,) = errors_of("mesh: m\nrouters: {r1: {port:\tx}}\n")
    line, caret = str(error).splitlines()[1:3]
    assert line[: line.index("x")].count("\t") == caret[: caret.index("^")].count("\t") == 1
    assert line.index("x") == caret.index("^")


def test_all_errors_are_reported_at_once_in_the_order_of_the_file() -> None:
    text = """\
mesh: two words
node_tsl: true
routers:
  r1:
    lisetners: []
    connect: [r2, {to: r9, cost: 0}]
  r2:
    port: 26671
    connect: [r2, r7]
brokers:
  b1: {url: "http://x"}
addresses:
  orders: {type: queue, broker: b7}
  ne*s: anycast
users:
  alice: {password: hunter2}
default_broker: b8
"""
    assert found_in(text) == [
        "1:7 AM107",
        "2:1 AM101",
        "5:5 AM101",
        "6:24 AM103",
        "6:34 AM106",
        "8:11 AM203",
        "9:15 AM201",
        "9:19 AM103",
        "11:13 AM302",
        "13:33 AM104",
        "14:3 AM401",
        "16:21 AM501",
        "17:17 AM104",
    ]


def test_a_broken_entry_does_not_make_references_to_it_wrong() -> None:
    text = "mesh: m\nrouters:\n  r1: {prot: 1, port: x}\n  r2: {connect: [r1]}\n  r3: {connect: [r2]}\n"
    assert found_in(text) == ["3:8 AM101", "3:23 AM105"]


@pytest.mark.parametrize(
    ("connect", "places"),
    [
        ("[r9, {to: r1, cost: 0}]", ["2:26 AM103", "2:35 AM201", "2:45 AM106"]),
        (
            "[{to: r2, cost: 0}, 5, r9, {to: r2, cost: x, cots: 1}, r8]",
            ["2:41 AM106", "2:45 AM105", "2:48 AM103", "2:57 AM202", "2:67 AM105", "2:70 AM101", "2:80 AM103"],
        ),
    ],
)
def test_a_broken_item_of_a_list_hides_nothing_in_the_others(connect: str, places: list[str]) -> None:
    assert found_in("mesh: m\nrouters: {r1: {connect: " + connect + "}, r2: }\n") == places


def test_a_broken_section_hides_nothing_in_the_others() -> None:
    text = "mesh: m\nrouters: [r1]\naddresses: {a: topik, b: {type: queue, broker: b1}}\n"
    assert found_in(text) == ["2:10 AM105", "3:16 AM106", "3:48 AM104"]


R = "mesh: m\nrouters: {r1: }\n"
ONE = "mesh: m\nrouters: {r1: }\nbrokers: {b1: {data: b1}}\n"
TWO = "mesh: m\nrouters: {r1: , r2: }\nbrokers: {b1: {data: b1}, b2: {data: b2}}\n"

EXAMPLES = [
    ("a: [", "1:5 AM004"),
    ("*x: anycast", "1:1 AM004"),
    ("a: [\n", "1:5 AM004"),
    ("mesh: m\na: {b: \n\n  \n", "2:7 AM004"),
    ("a: 'x", "1:4 AM004"),
    ("\tmesh: m", "1:1 AM004"),
    ("mesh: \x07", "1:7 AM004"),
    ("mesh: m\n---\nmesh: n", "2:1 AM004"),
    ("[" * 1000, "AM004"),
    ("mesh: m\nmesh: n\nrouters: {r1: }", "2:1 AM005"),
    ("", "AM006"),
    ("# nothing", "AM006"),
    ("- mesh", "1:1 AM007"),
    ("just text", "1:1 AM007"),
    (R + "x-a: !secret b", "3:6 AM008"),
    (R + "x-a: &a [*a]", "3:6 AM008"),
    (R + "x-a: {<<: 5}", "3:6 AM008"),
    (R + "? [a]\n: b", "3:3 AM008"),
    (R + "adresses: {}", "3:1 AM101"),
    (R + "brokers: {b1: {data: x, tls: {cipher: x}}}", "3:25 AM303", "3:31 AM101"),
    ("routers: {r1: }", "1:1 AM102"),
    ("mesh: m", "1:1 AM102"),
    (R + "addresses: {a: {distribution: closest}}", "3:13 AM102"),
    (R + "addresses:\n  a:", "4:3 AM102"),
    ("mesh: m\nrouters: {r1: {connect: [r2]}}", "2:26 AM103"),
    (R + "brokers: {b1: {data: x, routers: [r2]}}", "3:35 AM103"),
    (R + "default_broker: b1", "3:17 AM104"),
    ("mesh: 5\nrouters: {r1: }", "1:7 AM105"),
    ("mesh: m\nrouters: {r1: {port: x}}", "2:22 AM105"),
    ("mesh: m\nrouters: {r1: {port: 1.5}}", "2:22 AM105"),
    ("mesh: m\nnode_tls: maybe\nrouters: {r1: }", "2:11 AM105"),
    ("mesh: m\nrouters: {r1: {listeners: 5672}}", "2:27 AM105"),
    ("mesh: m\nrouters: {r1: {listeners: [x]}}", "2:28 AM105"),
    ("mesh: m\nrouters: {r1: {listeners: [x]}}\nusers: {a: }", "2:28 AM105"),
    ("mesh: m\nrouters: {r1: {connect: [5]}}", "2:26 AM105"),
    (R + "addresses: {a: [queue]}", "3:16 AM105"),
    (R + "addresses: {a: topik}", "3:16 AM106"),
    ("mesh: m\nrouters: {}", "2:10 AM106"),
    ("mesh: m\nrouters: {r1: {port: 70000}}", "2:22 AM106"),
    ("mesh: m\nrouters: {r1: {host: ''}}", "2:22 AM106"),
    ("mesh: m\nrouters: {r1: {listeners: [{idle_timeout_s: .inf}]}}", "2:45 AM106"),
    ("mesh: m\nrouters: {r1: , r2: {connect: [{to: r1, cost: 0}]}}", "2:47 AM106"),
    ("mesh: m\nrouters: {-r: }", "2:11 AM107"),
    ("mesh: m\nrouters: {all: }", "2:11 AM107"),
    ("mesh: " + "x" * 65 + "\nrouters: {r1: }", "1:7 AM107"),
    (R + "users: {a b: }", "3:9 AM107"),
    (R + "brokers: {r1: {data: x}}", "3:11 AM108"),
    ("mesh: m\nrouters: {r1: {connect: [r1]}}", "2:26 AM201"),
    ("mesh: m\nrouters: {r1: {connect: [r2]}, r2: {connect: [r1]}}", "2:47 AM202"),
    ("mesh: m\nrouters: {r1: {connect: [r2, {to: r2}]}, r2: }", "2:35 AM202"),
    ("mesh: m\nrouters: {r1: {mode: outer}}", "2:22 AM106"),
    ("mesh: m\nrouters: {r1: {connect: [e1]}, e1: {mode: edge, connect: [r2]}, r2: }", "2:26 AM206"),
    ("mesh: m\nrouters: {r1: , e1: {mode: edge, connect: [r1]}, e2: {mode: edge, connect: [e1]}}", "2:77 AM206"),
    ("mesh: m\nrouters: {r1: , e1: {mode: edge}}", "2:17 AM207"),
    (
        "mesh: m\nrouters: {r1: , e1: {mode: edge, connect: [r1]}}\nbrokers: {b1: {data: x, routers: [e1]}}",
        "3:35 AM208",
    ),
    ("mesh: m\nrouters: {r1: {connect: [e1]}, e1: {mode: adge, connect: [r2]}, r2: }", "2:43 AM106"),
    ("mesh: m\nrouters: {r1: {port: 26672}, r2: }", "2:30 AM203"),
    ("mesh: m\nrouters: {r1: {listeners: [5672, {host: 0.0.0.0}]}}", "2:34 AM203"),
    ("mesh: m\nrouters: {r1: {listeners: [26671]}}", "2:28 AM203"),
    (R + "brokers: {b1: {data: x, host: localhost, port: 26671}}", "3:48 AM203"),
    (R + "hello_interval_s: 0.05", "3:19 AM106"),
    (R + "hello_interval_s: fast", "3:19 AM105"),
    (R + "hello_interval_s: 0.2\nhello_max_age_s: 0.3", "4:18 AM205"),
    (R + "hello_max_age_s: 1.5", "3:18 AM205"),
    (R + "hello_interval_s: 0.05\nhello_max_age_s: 0.01", "3:19 AM106"),
    (R + "brokers: {b1: {routers: [r1]}}", "3:11 AM301"),
    (R + "brokers: {b1: {data: x, url: 'amqp://h'}}", "3:11 AM301"),
    (R + "brokers: {b1: {url: 'mqtt://h'}}", "3:21 AM302"),
    (R + "brokers: {b1: {url: 'amqp://'}}", "3:21 AM302"),
    (R + "brokers: {b1: {url: 'amqp://h:x'}}", "3:21 AM302"),
    (R + "brokers: {b1: {url: 'amqp://h/queue'}}", "3:21 AM302"),
    (R + "brokers: {b1: {url: 'amqp://h', port: 5}}", "3:33 AM303"),
    (R + "brokers: {b1: {url: 'amqp://h', disk_free_min_bytes: 0}}", "3:33 AM303"),
    (R + "brokers: {b1: {data: x, disk_free_min_bytes: -1}}", "3:46 AM106"),
    (R + "brokers: {b1: {data: x, address_prefix: /q}}", "3:25 AM303"),
    (R + "brokers: {b1: {data: x}, b2: {data: ./x}}", "3:37 AM304"),
    (R + "addresses: {'a*': anycast}", "3:13 AM401"),
    (R + "users: {a: {send: ['a#']}}", "3:20 AM401"),
    (R + "users: {a: {send: 'a#'}}", "3:19 AM401"),
    (R + "addresses: {_amqpmesh/x: anycast}", "3:13 AM402"),
    (R + "addresses: {a: queue}", "3:13 AM403"),
    (TWO + "addresses: {a: topic}", "4:13 AM403"),
    (TWO + "addresses: {a: {type: topic, brokers: [b1, b2]}}", "4:39 AM404"),
    (TWO + "addresses: {a: {type: anycast, broker: b1}}", "4:32 AM405"),
    (TWO + "addresses: {a: {type: multicast, distribution: closest}}", "4:34 AM405"),
    (TWO + "addresses: {a: {type: queue, broker: b1, brokers: b2}}", "4:30 AM406"),
    (TWO + "addresses: {a: {type: queue, brokers: [b1, b1]}}", "4:44 AM406"),
    (TWO + "addresses: {a.*: {type: queue, broker: b1, broker_address: x}}", "4:44 AM406"),
    (TWO + "addresses: {q: {type: queue, broker: b1}, a: {type: queue, broker: b1, fallback: q}}", "4:72 AM405"),
    (TWO + "addresses: {q: {type: queue, broker: b1}, a: {type: multicast, fallback: q}}", "4:64 AM405"),
    (R + "addresses: {a: {type: unavailable, priority: 7}}", "3:36 AM405"),
    (R + "addresses: {a: {type: multicast, retransmit: true}}", "3:34 AM405"),
    (TWO + "addresses: {a: {type: queue, broker: b1, subscription_expiry_s: 60}}", "4:42 AM405"),
    (R + "brokers: {x: {url: 'amqp://x'}}\naddresses: {a: {type: topic, subscription_expiry_s: 60}}", "4:30 AM413"),
    (R + "brokers: {x: {data: x}}\naddresses: {a: {type: topic, subscription_expiry_s: 0}}", "4:53 AM106"),
    (TWO + "addresses: {q: {type: queue, broker: b1}, a.#: {type: anycast, fallback: q}}", "4:64 AM406"),
    (R + "addresses: {a: {type: anycast, fallback: q}}", "3:42 AM407"),
    (R + "addresses: {a: {type: anycast, fallback: amqp:/q}}", "3:42 AM401"),
    (R + "addresses: {a: {type: anycast, fallback: a}}", "3:42 AM408"),
    (TWO + "addresses: {q: {type: topic, broker: b1}, a: {type: anycast, fallback: q}}", "4:72 AM408"),
    (TWO + "addresses: {q.#: {type: queue, broker: b1}, a: {type: anycast, fallback: q.#}}", "4:74 AM408"),
    (
        TWO
        + "addresses: {q: {type: queue, broker: b1}, a: {type: anycast, fallback: q}, b: {type: anycast, fallback: q}}",
        "4:105 AM409",
    ),
    (R + "addresses: {a: {type: anycast, priority: 10}}", "3:42 AM106"),
    (R + "addresses: {a: {type: anycast, dead_letter: d}}", "3:32 AM405"),
    (ONE + "addresses: {a: {type: queue, dead_letter: d}}", "4:43 AM410"),
    (ONE + "addresses: {a: {type: queue, expiry: d}, d: topic}", "4:38 AM410"),
    (ONE + "addresses: {a: {type: queue, dead_letter: d.*}, d.*: queue}", "4:43 AM410"),
    (
        TWO + "addresses: {a: {type: queue, broker: b1, dead_letter: d}, d: {type: queue, broker: b2}}",
        "4:55 AM410",
    ),
    (
        TWO + "addresses: {a: {type: queue, brokers: [b1, b2], dead_letter: d}, d: {type: queue, broker: b1}}",
        "4:62 AM410",
    ),
    (ONE + "addresses: {a: {type: queue, dead_letter: a}}", "4:43 AM411"),
    (ONE + "addresses: {a.#: {type: queue, expiry: a.late}}", "4:40 AM411"),
    (
        ONE + "addresses: {a: {type: queue, dead_letter: b}, b: {type: queue, expiry: c}, c: {type: queue, expiry: a}}",
        "4:101 AM411",
    ),
    (ONE + "addresses: {a: {type: queue, max_delivery_attempts: 3}}", "4:30 AM412"),
    (ONE + "addresses: {a: {type: queue, when_full: reject}}", "4:30 AM412"),
    (ONE + "addresses: {a: {type: queue, max_bytes: 1, when_full: dead-letter}}", "4:44 AM412"),
    (ONE + "addresses: {a: {type: topic, max_bytes: 1, when_full: block}}", "4:44 AM412"),
    (ONE + "addresses: {a: {type: queue, max_messages: 0}}", "4:44 AM106"),
    (
        R + "brokers: {b1: {url: 'amqp://h'}}\naddresses: {a: {type: queue, max_messages: 1}}",
        "4:30 AM413",
    ),
    (R + "users: {a: {password: hunter2}}", "3:23 AM501"),
    (R + "users: {anonymous: {password: '" + SECRET + "'}}", "3:21 AM502"),
    ("mesh: m\nrouters: {r1: {listeners: [{authentication: required}]}}", "2:45 AM503"),
    ("mesh: m\nrouters: {r1: {listeners: [{tls: {cert: c.pem}}]}}", "2:35 AM504"),
    (R + "brokers: {b1: {url: 'amqps://h', tls: {key: k.pem}}}", "3:40 AM504"),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example[-1])
def test_each_mistake_is_reported_where_it_is(example: tuple[str, ...]) -> None:
    text, *expected = example
    found = [place.removeprefix("0:0 ") for place in found_in(text)]
    assert found == expected


def test_every_code_has_an_example_here() -> None:
    of_files = {"AM001", "AM002", "AM003", "AM009", "AM204"}
    of_drills = {code for code in CODES if code.startswith("AM6")}
    assert {place[-5:] for _, *places in EXAMPLES for place in places} | of_files | of_drills == set(CODES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example[-1])
def test_every_error_says_how_to_mend_it(example: tuple[str, ...]) -> None:
    for error in errors_of(example[0]):
        assert error.fix
        assert str(error).endswith(f"amqpmesh explain {error.code}")
        assert not re.search(r"pydantic|Input should|Traceback|<class", str(error))


def test_a_syntax_error_at_the_end_of_the_file_shows_its_last_line() -> None:
    (error,) = errors_of("mesh: [\n")
    assert str(error).splitlines()[1:3] == ["    1 | mesh: [", "      |        ^"]


def test_a_fallback_that_nobody_declared_suggests_a_queue_that_somebody_did() -> None:
    queues = "addresses:\n  store: {type: queue, broker: b1}\n  rpc: {type: anycast, fallback: stroe}\n"
    (error,) = errors_of(TWO + queues)
    assert str(error).splitlines() == [
        "mesh.yml:6:34  AM407  address 'rpc': the fallback 'stroe' is no address of this mesh",
        "    6 |   rpc: {type: anycast, fallback: stroe}",
        "      |                                  ^^^^^ did you mean 'store'?  queues: store",
        "fix: add the queue, 'stroe: queue', or correct the name.      amqpmesh explain AM407",
    ]


def test_a_fallback_whose_queue_is_wrong_in_itself_is_not_called_unknown() -> None:
    assert found_in(R + "addresses: {q: {type: queue, broker: [b1]}, a: {type: anycast, fallback: q}}") == [
        "3:38 AM105"
    ]
    assert found_in(R + "addresses: {'q.#': topik, a: {type: anycast, fallback: q.x}}") == ["3:20 AM106"]


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_an_address_without_a_broker_is_mended_as_what_it_is(kind: str) -> None:
    (error,) = errors_of(TWO + f"addresses: {{a: {kind}}}")
    assert error.fix == f"name the broker: {{type: {kind}, broker: NAME}}, or set default_broker."


DEAD_LETTERS = TWO + "addresses:\n  orders: {type: queue, %s, dead_letter: dead}\n  %s\n"


@pytest.mark.parametrize(
    ("where", "other", "what", "fix", "mended"),
    [
        (
            "broker: b1",
            "dead: {type: queue, broker: b2}",
            "is on broker 'b2', but not on broker 'b1', where the address is",
            "have 'dead' be there too, 'brokers: [b2, b1]', or name a queue that is.",
            "dead: {type: queue, brokers: [b2, b1]}",
        ),
        (
            "brokers: [b1, b2]",
            "'dead.#': {type: queue, broker: b2}\n  dead: {type: queue, broker: b1}",
            "is on broker 'b1', but not on broker 'b2', where the address is",
            "have 'dead' be there too, 'brokers: [b1, b2]', or name a queue that is.",
            "dead: {type: queue, brokers: [b1, b2]}",
        ),
        (
            "brokers: [b1, b2]",
            "rpc: anycast",
            "is no address of this mesh",
            "declare it, 'dead: {type: queue, brokers: [b1, b2]}', or name another queue.",
            "dead: {type: queue, brokers: [b1, b2]}",
        ),
        (
            "broker: b2",
            "'#': multicast",
            "is of type multicast, expected a queue",
            "declare a queue, 'dead: {type: queue, broker: b2}'.",
            "dead: {type: queue, broker: b2}",
        ),
    ],
    ids=["elsewhere", "on one of two", "undeclared", "no queue"],
)
def test_a_queue_for_dead_letters_is_mended_where_the_address_is(
    where: str, other: str, what: str, fix: str, mended: str
) -> None:
    (error,) = errors_of(DEAD_LETTERS % (where, other))
    assert (error.message, error.fix) == (f"address 'orders': 'dead_letter: dead' {what}", fix)
    parse_topology(DEAD_LETTERS % (where, mended), file="mesh.yml")


@pytest.mark.parametrize(
    "name",
    ["dead", "1", "yes", "~", "it's", '"quoted"', "{late}", "[late]", "!late", "&late", "@late", "%late", "tröt"],
)
@pytest.mark.parametrize("option", ["dead_letter", "expiry"])
def test_a_queue_that_is_to_be_declared_is_written_so_that_it_can_be_pasted(option: str, name: str) -> None:
    orders = f"orders: {{type: queue, {option}: {json.dumps(name)}}}"
    (error,) = errors_of(ONE + f"addresses:\n  {orders}")
    assert error.fix is not None
    entry = error.fix.removeprefix("declare it, '").removesuffix("', or name another queue.")
    parse_topology(ONE + f"addresses:\n  {orders}\n  {entry}", file="mesh.yml")


def test_a_name_that_is_taken_is_not_offered_to_a_queue_for_dead_letters() -> None:
    (error,) = errors_of(ONE + "addresses: {a: {type: queue, expiry: late}, late: topic, late.kept: topic}")
    assert error.fix == "declare a queue, 'late.kept2: queue', and name that."


def test_a_queue_for_dead_letters_without_a_broker_is_one_mistake() -> None:
    places = found_in(TWO + "addresses: {a: {type: queue, broker: b1, dead_letter: d}, d: queue}")
    assert [place[-5:] for place in places] == ["AM403"]


def test_a_password_is_never_repeated_in_a_message() -> None:
    (error,) = errors_of(R + "users:\n  a:\n    password: >-\n      hunter2\n")
    assert "hunter2" not in str(error)
    (error,) = errors_of(R + "brokers:\n  b:\n    url: >-\n      mqtt://u:hunter2@h\n")
    assert "hunter2" not in str(error)


def test_a_value_that_is_merged_in_is_reported_where_it_stands() -> None:
    text = "mesh: m\nx-base: &base\n  port: x\nrouters:\n  r1:\n    <<: *base\n"
    assert found_in(text) == ["3:9 AM105"]


def test_aliases_that_multiply_without_end_are_refused() -> None:
    levels = "\n".join(f"x-{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9))
    (error,) = errors_of(f"x-0: &a0 [x]\n{levels}")
    assert error.code == "AM004"
    assert "more than 200000 values" in error.message


def test_routers_that_cannot_reach_each_other_are_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "mesh.yml"
    file.write_text("mesh: m\nrouters:\n  r1: {connect: [r2]}\n  r2:\n  r3: {connect: [r4]}\n  r4:\n")
    (warning,) = load(file).warnings
    assert (warning.code, warning.line, warning.severity) == ("AM204", 5, "warning")
    assert "warning: no connection leads from r3, r4 to r1, r2" in str(warning)
    assert load_topology(file).file == file


def test_a_missing_file_suggests_a_similar_one(tmp_path: Path) -> None:
    (tmp_path / "mesh.yml").write_text(R)
    error = error_of_file(tmp_path / "mehs.yml")
    assert error.code == "AM001"
    assert "did you mean" in str(error)
    assert "mesh.yml'" in str(error)


def test_a_missing_file_suggests_none_that_only_ends_alike(tmp_path: Path) -> None:
    for name in ("line-3.yml", "full.yml", "site.amqpmesh.yml", "file-with-a-long-name.yml"):
        (tmp_path / name).write_text(R)
    for name in ("nofile.yml", "none.amqpmesh.yml"):
        assert error_of_file(tmp_path / name).hint == ""
    assert "site.amqpmesh.yml" in error_of_file(tmp_path / "sites.yml").hint


def test_a_missing_file_in_a_missing_folder_is_reported_too(tmp_path: Path) -> None:
    assert error_of_file(tmp_path / "no" / "mesh.yml").code == "AM001"


def test_a_folder_is_no_topology_but_tells_which_it_has(tmp_path: Path) -> None:
    (tmp_path / "mesh.yml").write_text(R)
    error = error_of_file(tmp_path)
    assert error.code == "AM002"
    assert "mesh.yml" in error.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "mesh.yml"
    file.write_text(R)
    file.chmod(0)
    assert error_of_file(file).code == "AM002"


def test_a_file_that_is_not_utf_8_is_reported_at_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "mesh.yml"
    file.write_bytes(R.encode() + "# Grüße, ä\n".encode() + b"# Gr\xfc\xdfe\n")
    error = error_of_file(file)
    assert (error.code, error.line, error.col) == ("AM003", 4, 5)
    assert "0xfc" in error.message


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "mesh.yml"
    file.write_bytes(b"\xef\xbb\xbf" + R.encode().replace(b"\n", b"\r\n"))
    assert load_topology(file).mesh == "m"


def error_of_file(file: Path) -> ConfigError:
    with pytest.raises(TopologyErrors) as caught:
        load_topology(file)
    (error,) = caught.value.errors
    return error


def test_amqpmesh_yml_is_found_before_any_other_topology(tmp_path: Path) -> None:
    (tmp_path / "site.amqpmesh.yml").write_text(R)
    assert find_topology(tmp_path).name == "site.amqpmesh.yml"
    (tmp_path / "amqpmesh.yml").write_text(R)
    assert find_topology(tmp_path).name == "amqpmesh.yml"


def test_of_several_topologies_one_must_be_chosen(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.amqpmesh.yml").write_text(R)
    with pytest.raises(TopologyErrors, match=r"a\.amqpmesh\.yml, b\.amqpmesh\.yml"):
        find_topology(tmp_path)


def test_no_topology_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TopologyErrors, match=r"AM001  no amqpmesh\.yml here"):
        find_topology(tmp_path)
