"""The reference of metrics, the alert rules and the board are made of the table of metrics, and name nothing else.

``REWRITE=1 pytest mesh_tests/unit/test_monitoring_files.py`` makes them anew; the diff is for review.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from mesh.watch.metric_details import DEFAULT_TOP, MAX_TOP
from mesh.watch.metric_table import (
    DETAIL_GROUPS,
    LATENCY_BOUNDS,
    LEFT_OUT,
    NEIGHBOR_GROUP,
    NODE_GROUP,
    OBSERVER_GROUP,
    PATTERN_GROUP,
    QUEUE_GROUP,
    SUMMARY_GROUPS,
    MetricFamily,
    MetricGroup,
    MetricType,
)
from mesh_tests.installed import require
from mesh_tests.unit.addressing.topology.test_generated_files import ROOT, assert_current
from tools.alerts import ALERTS, alert_rules
from tools.grafana import COLUMNS, ROWS, expressions, grafana_board

REFERENCE = ROOT / "docs" / "reference" / "metrics.md"
GUIDE = ROOT / "docs" / "how-to" / "monitor.md"
RULES = ROOT / "docs" / "monitoring" / "alerts.yml"
BOARD = ROOT / "docs" / "monitoring" / "grafana.json"
RULE_TESTS = Path(__file__).with_name("alerts_test.yml")

EXPRESSIONS = (*(alert.expression for alert in ALERTS), *expressions())
FORMULA = (
    f"series <= {OBSERVER_GROUP.series} + {NODE_GROUP.series} x nodes + {PATTERN_GROUP.series} x patterns "
    f"+ {QUEUE_GROUP.series} x brokers x patterns + {NEIGHBOR_GROUP.series} x 2 x connections"
)
HEAD = f"""\
# Metrics

Made from `mesh/watch/metric_table.py`; a test compares. [How to monitor a mesh](../how-to/monitor.md) says how to get
them, and has alerts and a board.

The observer of a host writes them in Prometheus' text format 0.0.4. Counters count from the time when the observer
first saw the node, and do not fall when a link, a queue or an address goes. A node that has ended or is lost has no
gauges but `amqpmesh_node_up` and `amqpmesh_node_state`; its counters stay.

## Number of series of /metrics

The topology bounds the number: no series is of a single address, link or user. On each host, with nodes, embedded
brokers and connections between interior routers counted on that host, and all declared addresses and patterns of the
topology as patterns:

```text
{FORMULA}
```

Bounds of a histogram, in seconds: {", ".join(str((1 << power) / 1e6) for power in LATENCY_BOUNDS)}.
"""
DETAILS = f"""\
## /metrics/detailed

`/metrics/detailed?family=address&match=orders.#&top=100&by=in_rate` has series of single entities: those that match,
and of these the `top` ones with the largest `by`. A wrong parameter is answered with status 400 and a sentence.

| parameter | meaning |
|---|---|
| `family` | {", ".join(f"`{group.name}`" for group in DETAIL_GROUPS)} |
| `match` | address or pattern, as in the topology; of users a name or a pattern (default: all) |
| `top` | most entities, up to {MAX_TOP:,} (default: {DEFAULT_TOP:,}) |
| `by` | a number of the entity: a field of the REST interface (default: the rate of deliveries, of queues `depth`) |

`{LEFT_OUT.name}`, with label `family`, is the number of entities that matched and were left out.
"""


def test_the_reference_has_every_metric() -> None:
    assert_current(REFERENCE, "\n".join(reference()))


def test_the_alert_rules_are_current() -> None:
    assert_current(RULES, alert_rules())


def test_the_board_is_current() -> None:
    assert_current(BOARD, json.dumps(grafana_board(), indent=1) + "\n")


def reference() -> Iterator[str]:
    yield HEAD
    for group in SUMMARY_GROUPS:
        yield from section(group, "Of each" if group.entity else "Of the")
    yield DETAILS
    for group in DETAIL_GROUPS:
        yield from section(group, "Of each")


def section(group: MetricGroup, of: str) -> Iterator[str]:
    labels = ", ".join(f"`{label}`" for label, _ in group.labels)
    yield f"## {of} {group.each}"
    yield from ("", f"Labels: {labels}." if labels else "No labels.", "")
    yield from ("| metric | type | further labels | meaning |", "|---|---|---|---|")
    for family in group.families:
        further = {label: None for sample in family.samples for label, _ in sample.fixed}
        names = ", ".join(f"`{label}`" for label in further)
        yield f"| `{family.name}` | {family.type} | {names} | {family.meaning} |".replace("|  |", "| |")
    yield ""


def families() -> dict[str, tuple[MetricGroup, MetricFamily]]:
    """By the name of a series, the group and family of the series."""
    found = {}
    for group in SUMMARY_GROUPS:
        for family in group.families:
            ends = ("_bucket", "_sum", "_count") if family.type is MetricType.HISTOGRAM else ("",)
            found.update({family.name + end: (group, family) for end in ends})
    return found


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_names_metrics_and_labels_that_there_are(expression: str) -> None:
    known = families()
    assert set(re.findall(r"amqpmesh_\w+", expression)) <= known.keys()
    allowed = {"instance", "le"}
    for name in re.findall(r"amqpmesh_\w+", expression):
        group, family = known[name]
        allowed |= {label for label, _ in group.labels}
        allowed |= {label for sample in family.samples for label, _ in sample.fixed}
    if "amqpmesh_" in expression:
        used = set(re.findall(r'(\w+)(?:=|!=|=~|!~)"', expression))
        used |= {label for names in re.findall(r"by \(([^)]*)\)", expression) for label in names.split(", ")}
        assert used <= allowed


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_counters_are_shown_as_rates_and_gauges_are_not(expression: str) -> None:
    for name in re.findall(r"amqpmesh_\w+", expression):
        is_counter = families()[name][1].type is not MetricType.GAUGE
        assert is_counter == bool(re.search(rf"(?:rate|increase)\({name}\b", expression))


def test_a_row_of_the_board_is_full_and_its_panels_are_of_one_height() -> None:
    for _, panels in ROWS:
        line: list[Any] = []
        for panel in panels:
            line.append(panel)
            assert len({each.height for each in line}) == 1
            width = sum(each.width for each in line)
            assert width <= COLUMNS
            if width == COLUMNS:
                line = []
        assert line == []


def test_what_is_broken_comes_first_on_the_board() -> None:
    assert ROWS[0][0] == "Broken"


def test_the_guide_has_the_formula_and_a_section_for_each_alert() -> None:
    text = GUIDE.read_text()
    assert FORMULA in text
    nodes, patterns, brokers, connections = 4, 20, 1, 2
    example = OBSERVER_GROUP.series + NODE_GROUP.series * nodes + PATTERN_GROUP.series * patterns
    example += QUEUE_GROUP.series * brokers * patterns + NEIGHBOR_GROUP.series * 2 * connections
    assert f"with 20 patterns and 2 connections: at most {example:,} series" in text
    assert re.findall(r"^### (Amqpmesh\w+)$", text, re.MULTILINE) == [alert.name for alert in ALERTS]


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("promtool")
    require(program is not None, "promtool (Debian: prometheus)")
    return subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, check=False)


def test_promtool_accepts_the_alert_rules() -> None:
    checked = promtool("check", "rules", RULES)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(ALERTS)} rules found" in checked.stdout


def test_promtool_accepts_the_expressions_of_the_board(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{number}", "expr": plain(each)} for number, each in enumerate(expressions())]
    file = tmp_path / "board.yml"
    file.write_text(json.dumps({"groups": [{"name": "board", "rules": rules}]}))
    checked = promtool("check", "rules", file)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def plain(expression: str) -> str:
    """The expression as Grafana sends it: with values in place of variables."""
    return expression.replace("$__rate_interval", "1m").replace("$pattern", ".*").replace("$node", ".*")


def test_the_types_of_grafana_have_each_field_of_the_board() -> None:
    """Grafana itself is in none of the package registries; its published types drop what they do not know."""
    require(find_spec("grafana_foundation_sdk") is not None, "grafana-foundation-sdk", command="make setup")
    plugins = import_module("grafana_foundation_sdk.cog.plugins")
    dashboards = import_module("grafana_foundation_sdk.models.dashboard")
    encoder = import_module("grafana_foundation_sdk.cog.encoder").JSONEncoder
    plugins.register_default_plugins()
    board = json.loads(BOARD.read_text())
    kept = json.loads(json.dumps(dashboards.Dashboard.from_json(board), cls=encoder))
    # What Grafana's own pages write beside `query`.
    assert set(dropped(board, kept)) == {f"/templating/list/{number}/definition" for number in (1, 2)}


def dropped(board: Any, kept: Any, place: str = "") -> Iterator[str]:
    """The places of ``board`` that ``kept`` has not, or has otherwise."""
    if isinstance(board, dict) and isinstance(kept, dict):
        for name, value in board.items():
            yield from dropped(value, kept.get(name, dropped), f"{place}/{name}")
    elif isinstance(board, list) and isinstance(kept, list) and len(board) == len(kept):
        for number, (value, other) in enumerate(zip(board, kept, strict=True)):
            yield from dropped(value, other, f"{place}/{number}")
    elif board != kept:
        yield place


def test_each_alert_is_raised_when_it_should_be_and_not_before() -> None:
    tested = set(re.findall(r"alertname: (\w+)", RULE_TESTS.read_text()))
    assert tested == {alert.name for alert in ALERTS}
    checked = promtool("test", "rules", RULE_TESTS)
    assert checked.returncode == 0, checked.stdout + checked.stderr
