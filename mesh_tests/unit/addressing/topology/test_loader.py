"""A wrong topology file: every mistake at once, each with its place, the line, and how to mend it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from addressing.errors import ConfigError, TopologyErrors
from addressing.topology.codes import CODES
from addressing.topology.loader import find_topology, load, load_topology, parse_topology
from mesh_tests.unit.addressing.topology.mistakes import ONE, TWO, R, errors_of, found_in


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


def test_a_syntax_error_at_the_end_of_the_file_shows_its_last_line() -> None:
    (error,) = errors_of("mesh: [\n")
    assert str(error).splitlines()[1:3] == ["    1 | mesh: [", "      |        ^"]


def test_a_fallback_that_nobody_declared_suggests_a_queue_that_somebody_did() -> None:
    queues = "addresses:\n  store: {type: queue, broker: b1}\n  rpc: {type: anycast, fallback: stroe}\n"
    (error,) = errors_of(TWO + queues)
    assert str(error).splitlines() == [
        "mesh.yml:6:34  AM407  address 'rpc': the fallback 'stroe' is not an address of this mesh",
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
            "put 'dead' on all of them, 'brokers: [b2, b1]', or name a queue that is there.",
            "dead: {type: queue, brokers: [b2, b1]}",
        ),
        (
            "brokers: [b1, b2]",
            "'dead.#': {type: queue, broker: b2}\n  dead: {type: queue, broker: b1}",
            "is on broker 'b1', but not on broker 'b2', where the address is",
            "put 'dead' on all of them, 'brokers: [b1, b2]', or name a queue that is there.",
            "dead: {type: queue, brokers: [b1, b2]}",
        ),
        (
            "brokers: [b1, b2]",
            "rpc: anycast",
            "is not an address of this mesh",
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


def test_addresses_that_are_one_at_their_broker_may_say_the_same_of_it(tmp_path: Path) -> None:
    file = tmp_path / "mesh.yml"
    alike = "  {}: {{type: queue, max_bytes: 9, broker_address: x}}\n"
    other = "  c: {type: topic, broker: b2, broker_address: x}\n"
    file.write_text(
        TOPICS_ON_TWO + alike.format("a") + alike.format("b") + "  x: {type: queue, max_bytes: 9}\n" + other
    )
    assert not load(file).warnings


TOPICS_ON_TWO = (
    "mesh: m\nrouters: {r1: }\nbrokers: {b1: {data: x}, b2: {data: y}}\ndefault_broker: b1\n"
    "addresses:\n  news.#: topic\n"
)


def test_a_topic_that_a_subscription_on_another_broker_misses_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "mesh.yml"
    file.write_text(TOPICS_ON_TWO + "  news.sport: topic\n  news.alerts: {type: topic, broker: b2}\n")
    (warning,) = load(file).warnings
    assert (warning.code, warning.line, warning.severity) == ("AM414", 8, "warning")
    assert "a subscriber of 'news.#', on b1, does not get the messages of 'news.alerts', on b2" in str(warning)


def test_topics_of_two_brokers_that_no_filter_has_in_common_are_no_warning(tmp_path: Path) -> None:
    file = tmp_path / "mesh.yml"
    file.write_text(TOPICS_ON_TWO + "  prices.#: {type: topic, broker: b2}\n  news.jobs: {type: queue, broker: b2}\n")
    assert not load(file).warnings


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
    with pytest.raises(TopologyErrors, match=r"AM001  this folder has no amqpmesh\.yml"):
        find_topology(tmp_path)
