"""Each mistake in a topology file has its code, is told where it is, and can be mended."""

from __future__ import annotations

import re

import pytest

from addressing.topology.codes import CODES
from mesh_tests.unit.addressing.topology.mistakes import ONE, TWO, R, errors_of, found_in

SECRET = "SCRAM-SHA-256$4096:c2FsdA==$" + "A" * 43 + "=:" + "A" * 43 + "="

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
    # One mistake, and not one more for each setting that only one of the two kinds has.
    (
        R + "brokers: {b1: {data: x, url: 'amqp://h'}}\naddresses: {a: {type: queue, max_messages: 5}}",
        "3:11 AM301",
    ),
    (R + "brokers: {b1: {routers: [r1]}}\naddresses: {a: {type: queue, max_messages: 5}}", "3:11 AM301"),
    (R + "brokers: {b1: {url: 'mqtt://h'}}", "3:21 AM302"),
    (R + "brokers: {b1: {url: 'amqp://'}}", "3:21 AM302"),
    (R + "brokers: {b1: {url: 'amqp://h:x'}}", "3:21 AM302"),
    (R + "brokers: {b1: {url: 'amqp://h/queue'}}", "3:21 AM302"),
    (R + "brokers: {b1: {url: 'amqp://h', port: 5}}", "3:33 AM303"),
    (R + "brokers: {b1: {url: 'amqp://h', disk_free_min_bytes: 0}}", "3:33 AM303"),
    (R + "brokers: {b1: {data: x, disk_free_min_bytes: -1}}", "3:46 AM106"),
    (R + "brokers: {b1: {data: x, address_prefix: /q}}", "3:25 AM303"),
    (R + "brokers: {b1: {data: x, share_connections: true}}", "3:25 AM303"),
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
    (TWO + "addresses: {a: {type: anycast, spill: true}}", "4:32 AM405"),
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
    (R + "addresses: {a: {type: anycast, fill_to: true}}", "3:32 AM405"),
    (R + "brokers: {x: {url: 'amqp://x'}}\naddresses: {a: {type: topic, fill_to: true}}", "4:30 AM413"),
    (R + "brokers: {x: {data: x}}\naddresses: {a: {type: topic, fill_to: often}}", "4:39 AM105"),
    (ONE + "addresses: {a: topic, b: {type: topic, broker_address: a, fill_to: true}}", "4:56 AM415"),
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
    (ONE + "addresses: {q: queue, a: {type: topic, broker_address: q}}", "4:56 AM415"),
    (
        ONE + "addresses: {a: {type: queue, broker_address: x}, b: {type: queue, max_bytes: 9, broker_address: x}}",
        "4:97 AM415",
    ),
    (ONE + "addresses: {a: {type: queue, max_queues: 5}}", "4:30 AM416"),
    (ONE + "addresses: {a: {type: queue, queue_expiry_s: 5}}", "4:30 AM416"),
    (ONE + "addresses: {a.#: {type: topic, max_queues_per_user: 5}}", "4:32 AM405"),
    (R + "brokers: {x: {url: 'amqp://x'}}\naddresses: {a.#: {type: queue, max_queues: 6}}", "4:32 AM413"),
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
    of_files = {"AM001", "AM002", "AM003", "AM009", "AM204", "AM305", "AM414"}
    of_drills = {code for code in CODES if code.startswith("AM6")}
    assert {place[-5:] for _, *places in EXAMPLES for place in places} | of_files | of_drills == set(CODES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example[-1])
def test_every_error_says_how_to_mend_it(example: tuple[str, ...]) -> None:
    for error in errors_of(example[0]):
        assert error.fix
        assert str(error).endswith(f"amqpmesh explain {error.code}")
        assert not re.search(r"pydantic|Input should|Traceback|<class", str(error))
