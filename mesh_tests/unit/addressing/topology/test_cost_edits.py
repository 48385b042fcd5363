"""Is a cost written into a topology file, and is all else left as it is?"""

from __future__ import annotations

import difflib
from pathlib import Path
from random import Random

import pytest

from addressing.errors import BadValue
from addressing.topology.cost_edits import read_exactly, with_costs, write_costs
from addressing.topology.loader import parse_topology

REMARKS = ("", "  # far away", "  # {to: r9, cost: 4}", "   # ü, \u00e9 'quoted\"")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("connect: [r1]", "connect: [{to: r1, cost: 5}]"),
        ("connect: ['r1']  # near", "connect: [{to: 'r1', cost: 5}]  # near"),
        ("connect:\n    - r1  # near", "connect:\n    - {to: r1, cost: 5}  # near"),
        ("connect: [{to: r1, cost: 3}]", "connect: [{to: r1, cost: 5}]"),
        ("connect: [{cost: 0x3, to: r1}]", "connect: [{cost: 5, to: r1}]"),
        ('connect: [{to: "r1"}]', 'connect: [{to: "r1", cost: 5}]'),
        ("connect: [{to: r1, host: h}]", "connect: [{to: r1, cost: 5, host: h}]"),
        ("connect:\n    - to: r1 # a\n      host: h", "connect:\n    - to: r1 # a\n      cost: 5\n      host: h"),
        ("connect:\n    - host: h\n      to: r1", "connect:\n    - host: h\n      to: r1\n      cost: 5"),
        ("connect:\n    - to: r1\n      cost:  # none", "connect:\n    - to: r1\n      cost: 5  # none"),
        ("connect: [r1]\r", "connect: [{to: r1, cost: 5}]\r"),
        ("connect:\r\n    - to: r1\r", "connect:\r\n    - to: r1\r\n      cost: 5\r"),
    ],
)
def test_a_cost_is_written_in_the_form_of_its_place(before: str, after: str) -> None:
    head = "mesh: m\nrouters:\n  r1: {}\n  r2:\n    "
    assert with_costs(f"{head}{before}\n", {("r2", "r1"): 5}) == f"{head}{after}\n"
    assert with_costs(f"\ufeff{head}{before}\n# end", {("r2", "r1"): 5}) == f"\ufeff{head}{after}\n# end"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_without_an_end_of_its_last_line_stays_so(end: str) -> None:
    text = end.join(("mesh: m", "routers:", "  r1: {}", "  r2:", "    connect:", "      - to: r1"))
    assert with_costs(text, {("r2", "r1"): 5}) == f"{text}{end}        cost: 5"


@pytest.mark.parametrize(
    "text",
    [
        "x-c: &c {to: r1}\nrouters: {r1: {}, r2: {connect: [*c]}, r3: {connect: [*c]}}\n",
        "x-c: &c {cost: 3}\nrouters: {r1: {}, r2: {connect: [{<<: *c, to: r1}]}, r3: {connect: [{<<: *c, to: r1}]}}\n",
    ],
)
def test_a_cost_that_other_places_share_is_left_to_the_author(text: str) -> None:
    with pytest.raises(BadValue, match="by hand"):
        with_costs(f"mesh: m\n{text}", {("r2", "r1"): 5})


@pytest.mark.parametrize("begin", ["", "# a\r# b\r\n"])
def test_a_file_with_ends_of_lines_of_another_kind_is_left_to_the_author(begin: str) -> None:
    text = begin + "\r".join(("mesh: m", "routers:", "  r1: {}", "  r2:", "    connect: [r1]", ""))
    assert "r2" in parse_topology(text).routers
    with pytest.raises(BadValue, match="by hand"):
        with_costs(text, {("r2", "r1"): 5})


def test_a_connection_that_the_file_does_not_have_is_an_error() -> None:
    with pytest.raises(KeyError):
        with_costs("mesh: m\nrouters: {r1: {}, r2: {}}\n", {("r1", "r2"): 5})


def test_the_file_is_replaced_as_a_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "amqpmesh.yml"
    text = "mesh: m\r\nrouters: {r1: {}, r2: {connect: [r1]}} # x\r\n"
    file.write_bytes(text.encode())
    file.chmod(0o640)
    write_costs(file, {("r2", "r1"): 7}, read_exactly(file))
    assert file.read_bytes() == text.replace("[r1]", "[{to: r1, cost: 7}]").encode()
    assert file.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in tmp_path.iterdir()] == ["amqpmesh.yml"]


def test_a_file_that_an_editor_saved_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "amqpmesh.yml"
    file.write_text("mesh: m\nrouters: {r1: {}, r2: {connect: [r1]}}\n")
    shown = read_exactly(file)
    file.write_text(shown + "# saved\n")
    with pytest.raises(BadValue, match="has changed meanwhile"):
        write_costs(file, {("r2", "r1"): 7}, shown)
    assert file.read_text() == shown + "# saved\n"


@pytest.mark.parametrize("seed", range(120))
def test_only_the_lines_of_connections_differ_in_random_files(seed: int) -> None:
    random = Random(seed)
    text = random_text(random)
    edges = [(edge.dialer, edge.to) for edge in parse_topology(text).edges()]
    costs = {edge: random.randint(1, 99) for edge in random.sample(edges, random.randint(1, len(edges)))}
    changed = with_costs(text, costs)
    now = {(edge.dialer, edge.to): edge.cost for edge in parse_topology(changed).edges()}
    then = {(edge.dialer, edge.to): edge.cost for edge in parse_topology(text).edges()}
    assert now == {**then, **costs}
    assert with_costs(changed, costs) == changed
    # What an edit takes away are former costs; what it adds, besides, are keys, brackets and names of routers.
    old, new = text.split("\n"), changed.split("\n")
    removed = [line for line in difflib.ndiff(old, new) if line.startswith("- ")]
    assert len(removed) <= len(costs)
    for mark in ("#", '"', "'", "\r", "\t"):
        assert changed.count(mark) >= text.count(mark)
    assert [line.partition("#")[2] for line in old if "#" in line] == [
        line.partition("#")[2] for line in new if "#" in line
    ]


def random_text(random: Random) -> str:
    """A valid file with remarks, in random forms of YAML."""
    names = [f"r{i}" for i in range(1, random.randint(3, 6))]
    lines = ["# head", "mesh: 'm'", "", "routers:" + random.choice(REMARKS)]
    for i, name in enumerate(names):
        connect = random.sample(names[:i], min(i, random.randint(1, 2)))
        if not connect:
            lines += [f"  {name}: {{}}{random.choice(REMARKS)}"]
            continue
        if random.random() < 0.4:
            items = ", ".join(_flow(random, to) for to in connect)
            lines += [f"  {name}: {{ connect: [{items}] }}{random.choice(REMARKS)}"]
            continue
        lines += [f"  {name}:{random.choice(REMARKS)}", "    connect:" + random.choice(REMARKS)]
        for to in connect:
            lines += _block(random, to)
        lines += random.choice(([], ["    # between"], ["    mode: interior"]))
    lines += ["addresses: {a: anycast,  'b.#': queue}", "brokers: {b1: {data: ./b1}}  # last"]
    return random.choice(("\n", "\r\n")).join(lines) + random.choice(("", "\n"))


def _flow(random: Random, to: str) -> str:
    name = random.choice((to, f"'{to}'", f'"{to}"'))
    return random.choice((name, f"{{to: {name}}}", f"{{ cost: 3,  to: {name} }}", f"{{to: {name}, port: 9}}"))


def _block(random: Random, to: str) -> list[str]:
    name = random.choice((to, f"'{to}'", f'"{to}"'))
    remark = random.choice(REMARKS)
    return random.choice(
        (
            [f"      - {name}{remark}"],
            [f"      -   {_flow(random, to)}{remark}"],
            [f"      - to: {name}{remark}", f"        cost: 3{random.choice(REMARKS)}"],
            [f"      - to:   {name}{remark}", "", "        # of the host", "        host: h"],
            [f"      - host: h{remark}", f"        to: {name}{random.choice(REMARKS)}"],
        )
    )
