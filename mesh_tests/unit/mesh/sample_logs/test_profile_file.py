"""What a traffic profile may say, and what its author hears of mistakes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from addressing.topology.loader import load_topology
from mesh.commands.cli import cli
from mesh.sample_logs.profile import Profile
from mesh.sample_logs.profile_file import ProfileInvalid, parse_profile

TOPOLOGY = load_topology("topologies/demo.yml")
HOW_TO = Path("docs/how-to/generate-link-logs.md").read_text()


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("rate: fast", 1, "expected a number, or a number and a unit, got 'fast'"),
        ("duration: 10", 1, "10 is not a valid duration: expected a number with a unit, such as 10s"),
        ("rat: 5/s", 1, "unknown key 'rat'"),
        ("churn:\n  lief: 10s", 2, "unknown key 'lief'"),
        ("addresses:\n  orders:\n    prducers: 3", 3, "unknown key 'prducers'"),
        ("addresses: {nobody: {}}", 1, "unknown address 'nobody'"),
        ("addresses:\n  orders: {producers_at: r9}", 2, "unknown router 'r9'"),
        ("addresses:\n  orders: {rejected: 60%, released: 50%}", 2, "are 110% of the messages: expected 100 % at most"),
        ("addresses:\n  orders: {rejected: 0.5}", 2, "'0.5' is not a valid share"),
        ("clock_skew: {r7: 10ms}", 1, "unknown node 'r7'"),
        ("outages:\n  - {link: [r1, b1], at: 1m, for: 1m}", 2, "r1 and b1 are not connected"),
        ("outages:\n  - {at: 1m, for: 1m}", 2, "expected one of 'router', 'broker' and 'link'"),
        ("outages:\n  - {broker: b7, at: 1m, for: 1m}", 2, "unknown broker 'b7'"),
        ("outages:\n  - {link: [r1, r2], at: 1m, for: 1m, stopped: true}", 2, "a link cannot be stopped"),
        ("addresses:\n  orders: {expired: 60%, dead_lettered: 50%}", 2, "are 110% of the messages"),
        ("clock_steps: {r7: [{at: 1m, by: 2s}]}", 1, "unknown node 'r7'"),
        ("outages:\n  - {router: r1, at: 1m}", 2, "the key 'for' is missing"),
        ("day: {peak: noon}", 1, "'noon' is not a valid time of day"),
        ("- 1", 1, "expected a mapping with keys such as 'duration' and 'rate'"),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(ProfileInvalid, match=re.escape(said)) as raised:
        parse_profile(text, TOPOLOGY, file="traffic.yml")
    assert [(error["file"], error["line"]) for error in raised.value.errors] == [("traffic.yml", line)]


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ProfileInvalid) as raised:
        parse_profile("rate: fast\nduration: 10\nzpf: 1", TOPOLOGY)
    assert [error["line"] for error in raised.value.errors] == [1, 2, 3]


def test_nothing_in_a_profile_is_the_default() -> None:
    assert parse_profile("", TOPOLOGY) == Profile()


def test_the_how_to_documents_every_key() -> None:
    parts = set(re.findall(r"^\| `([a-z_]+)` \|", HOW_TO, re.MULTILINE))
    assert parts == documented()


def documented() -> set[str]:
    from mesh.sample_logs.profile import PARTS

    return {field.alias or name for part in PARTS.values() for name, field in part.model_fields.items()}


def test_the_example_of_the_how_to_makes_logs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", HOW_TO, re.DOTALL)
    profile = tmp_path / "traffic.yml"
    profile.write_text(example)
    options = [
        "-t",
        "topologies/ring_4.yml",
        "--profile",
        str(profile),
        "--records",
        "20k",
        "--out",
        str(tmp_path / "o"),
    ]
    result = CliRunner().invoke(cli, ["linklogs", "generate", *options])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "o" / "_truth.json").is_file()
    again = CliRunner().invoke(cli, ["linklogs", "generate", *options])
    assert again.exit_code == 1
    assert "is not empty" in again.output
