"""Files that are made from the code or the examples are current.

``REWRITE=1 pytest mesh_tests/unit/addressing/topology/test_generated_files.py`` makes them anew, for review as a diff.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from addressing.topology.broker_settings import Broker, BrokerTls
from addressing.topology.codes import CODES
from addressing.topology.descriptions import describe
from addressing.topology.drawing import draw_topology
from addressing.topology.json_schema import topology_schema
from addressing.topology.link_log_settings import LinkLogs, Redaction
from addressing.topology.loader import load, parse_topology
from addressing.topology.log_settings import Logs
from addressing.topology.metric_settings import Metrics
from addressing.topology.model import (
    Connection,
    DeclaredAddress,
    Listener,
    ListenerTls,
    Router,
    Topology,
    User,
)
from addressing.topology.part import TopologyPart
from addressing.topology.watch_settings import Watch

ROOT = Path(__file__).resolve().parents[4]
EXAMPLES = sorted((ROOT / "topologies").glob("*.yml"))
REFERENCE = ROOT / "docs" / "reference" / "topology.md"
REWRITE = bool(os.environ.get("REWRITE"))

HEAD = """\
# Example topologies

Each file is complete: `amqpmesh up -t topologies/line_3.yml` runs it, `amqpmesh check -t FILE` draws it as below. The
numbers are costs, and `r3[b1]` is a router with the broker b1 attached. All keys are explained in
[docs/reference/topology.md](../docs/reference/topology.md). The drawings are made from the files, and a test compares.
"""

PARTS: list[tuple[str, type[TopologyPart]]] = [
    ("The file", Topology),
    ("routers: NAME:", Router),
    ("routers: NAME: listeners:", Listener),
    ("routers: NAME: listeners: tls:", ListenerTls),
    ("routers: NAME: connect:", Connection),
    ("brokers: NAME:", Broker),
    ("brokers: NAME: tls:", BrokerTls),
    ("addresses: PATTERN:", DeclaredAddress),
    ("users: NAME:", User),
    ("link_logs:", LinkLogs),
    ("link_logs: redact:", Redaction),
    ("metrics:", Metrics),
    ("watch:", Watch),
    ("logs:", Logs),
]


def assert_current(file: Path, content: str) -> None:
    if REWRITE:
        file.write_text(content)
    assert file.read_text() == content, f"{file} is out of date: run this test with REWRITE=1"


def test_the_schema_for_editors_is_current() -> None:
    assert_current(ROOT / "topologies" / "amqpmesh.schema.json", json.dumps(topology_schema(), indent=2) + "\n")


def test_the_readme_draws_each_topology() -> None:
    assert_current(ROOT / "topologies" / "README.md", HEAD + "".join(section(file) for file in EXAMPLES))


def section(file: Path) -> str:
    text = file.read_text()
    comment = re.findall(r"^# ?(.*)\n", text.partition("\nmesh:")[0] + "\n", re.MULTILINE)[1:]
    about = "\n".join(re.sub(r"^ {2,}", "* ", line) for line in comment if line)
    about = about.replace("\n* ", "\n\n* ", 1)
    return f"\n## [{file.name}]({file.name})\n\n{about}\n\n```text\n{draw_topology(load(file).topology)}```\n"


def test_the_reference_lists_every_key_and_every_code() -> None:
    text = REFERENCE.read_text()
    for name, content in (("keys", "\n".join(key_tables())), ("codes", "\n".join(code_table()))):
        block = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = block.sub(lambda found, content=content: f"{found[1]}{content}\n{found[2]}", text)
    assert_current(REFERENCE, text)


def key_tables() -> Iterator[str]:
    for title, part in PARTS:
        yield from (
            "",
            f"### `{title}`" if ":" in title else f"### {title}",
            "",
            "| key | default | meaning |",
            "|---|---|---|",
        )
        for key, field in part.model_fields.items():
            default = "required" if field.is_required() else shown(field.get_default(call_default_factory=True))
            extra = field.json_schema_extra
            if isinstance(extra, dict) and extra.get("default", "") is None:
                default = ""
            yield f"| `{key}` | {default} | {describe(part.__name__, key)} |".replace("|  |", "| |")
    yield ""


def shown(default: Any) -> str:
    if default is None or default in ("", (), {}) or isinstance(default, TopologyPart):
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default.value if isinstance(default, Enum) else default}`"


def code_table() -> Iterator[str]:
    yield from ("", "| code | mistake | explanation |", "|---|---|---|")
    for code in CODES.values():
        yield f"| {code.code} | {code.title} | {code.explanation} |"
    yield ""


def test_the_example_in_the_reference_is_right() -> None:
    for example in re.findall(r"```yaml\n(.*?)```", REFERENCE.read_text(), re.DOTALL):
        parse_topology(example)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_each_example_is_right_and_without_warnings(file: Path) -> None:
    assert load(file).warnings == ()
    assert file.read_text().startswith("# yaml-language-server: $schema=amqpmesh.schema.json\n")


def test_the_demo_has_every_kind_of_address_and_survives_the_loss_of_any_router() -> None:
    demo = load(ROOT / "topologies" / "demo.yml").topology
    assert {str(address.type) for address in demo.addresses.values()} == {"anycast", "multicast", "queue", "topic"}
    assert all(broker.is_embedded and len(demo.routers_of(name)) > 1 for name, broker in demo.brokers.items())
    edges = {frozenset((edge.dialer, edge.to)) for edge in demo.edges()}
    assert edges == {frozenset(pair) for pair in (("r1", "r2"), ("r1", "r3"), ("r2", "r3"))}
