"""Makes docs/monitoring/grafana.json, a board for Grafana; `mesh_tests/unit/test_monitoring_files.py` compares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

COLUMNS: Final = 24
DATA_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_PATTERN: Final = 'pattern=~"$pattern"'
_NODE: Final = 'node=~"$node"'


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of ``width`` columns, of type stat, table or timeseries. ``queries``: expression by legend."""

    title: str
    type: str
    width: int
    height: int
    unit: str
    queries: dict[str, str]
    meaning: str


def _quantile(share: float) -> str:
    buckets = f"sum by (le, pattern) (rate(amqpmesh_pattern_latency_seconds_bucket{{{_PATTERN}}}[$__rate_interval]))"
    return f"histogram_quantile({share}, {buckets})"


def _rate(metric: str, labels: str, by: str) -> str:
    return f"sum by ({by}) (rate({metric}{{{labels}}}[$__rate_interval]))"


ROWS: Final = (
    (
        "Broken",
        (
            Panel("Nodes that do not run", "stat", 4, 4, "short",
                  {"": 'sum(amqpmesh_node_state{state=~"lost|silent|unknown"}) or vector(0)'},
                  "Nodes that are lost, silent, or never started. A node that was stopped in order does not count."),
            Panel("Neighbors that are not heard", "stat", 4, 4, "short",
                  {"": "count(amqpmesh_neighbor_up == 0) or vector(0)"},
                  "Connections between routers that are down, seen from each end."),
            Panel("Producers without credit", "stat", 4, 4, "short",
                  {"": "sum(amqpmesh_pattern_waiting_producers) or vector(0)"},
                  "Links of clients that wait for consumers, for room in a queue, or for a broker."),
            Panel("Oldest message in a queue", "stat", 4, 4, "s",
                  {"": "max(amqpmesh_pattern_queue_oldest_age_seconds) or vector(0)"},
                  "Over all queues and subscriptions."),
            Panel("Deliveries over 10 s, last hour", "stat", 4, 4, "short",
                  {"": 'sum(increase(amqpmesh_pattern_deliveries_delayed_10s_total{direction="in"}[1h])) or vector(0)'},
                  "Deliveries from clients that had their outcome 10 s after their arrival, or later."),
            Panel("Records lost, last hour", "stat", 4, 4, "short",
                  {"": "sum(increase(amqpmesh_node_records_dropped_total[1h]) "
                       "+ increase(amqpmesh_node_records_missed_total[1h])) or vector(0)"},
                  "If this is not 0, the numbers on this board are too small."),
            Panel("Which nodes", "table", 12, 6, "short", {"": 'amqpmesh_node_state{state!="running"} == 1'},
                  "Nodes in another state than running. ended: stopped in order."),
            Panel("Which neighbors", "table", 12, 6, "short", {"": "amqpmesh_neighbor_up == 0"},
                  "The router at `node` does not hear `neighbor`."),
        ),
    ),
    (
        "Messages",
        (
            Panel("Deliveries from clients", "timeseries", 12, 8, "mps",
                  {"{{pattern}}": _rate("amqpmesh_pattern_deliveries_total", f'{_PATTERN},direction="in"', "pattern")},
                  "Deliveries per second, by declared pattern."),
            Panel("Deliveries that were not accepted", "timeseries", 12, 8, "mps",
                  {"{{pattern}} {{outcome}}": _rate(
                      "amqpmesh_pattern_deliveries_total",
                      f'{_PATTERN},direction="in",outcome!~"accepted|settled"', "pattern, outcome") + " > 0"},
                  "Deliveries per second, by declared pattern and outcome."),
            Panel("Time to the outcome", "timeseries", 12, 8, "s",
                  {"{{pattern}} 99 %": _quantile(0.99), "{{pattern}} 50 %": _quantile(0.5)},
                  "From arrival to settlement of deliveries from clients; buckets of a factor of 2, above 1 s of 4."),
            Panel("Producers without credit", "timeseries", 12, 8, "short",
                  {"{{pattern}}": f"sum by (pattern) (amqpmesh_pattern_waiting_producers{{{_PATTERN}}})",
                   "{{pattern}}, average": _rate("amqpmesh_pattern_starved_seconds_total", _PATTERN, "pattern")},
                  "At this moment, and on average: seconds without credit, per second."),
        ),
    ),
    (
        "Queues",
        (
            Panel("Messages in queues", "timeseries", 8, 8, "short",
                  {"{{pattern}}": f"sum by (pattern) (amqpmesh_pattern_queue_messages{{{_PATTERN}}})"},
                  "Messages in the queues and subscriptions of a pattern, at all brokers."),
            Panel("Oldest message", "timeseries", 8, 8, "s",
                  {"{{pattern}}": f"max by (pattern) (amqpmesh_pattern_queue_oldest_age_seconds{{{_PATTERN}}})"},
                  "Age of the oldest message of a pattern."),
            Panel("In and out", "timeseries", 8, 8, "mps",
                  {"{{pattern}} in": _rate("amqpmesh_pattern_queue_enqueued_total", _PATTERN, "pattern"),
                   "{{pattern}} out": _rate("amqpmesh_pattern_queue_dequeued_total", _PATTERN, "pattern"),
                   "{{pattern}} dead": _rate("amqpmesh_pattern_queue_dead_lettered_total", _PATTERN, "pattern")
                   + " > 0"},
                  "Messages per second that enter queues, that consumers settle, and that go to dead-letter queues."),
        ),
    ),
    (
        "Nodes",
        (
            Panel("Clients", "timeseries", 8, 8, "short",
                  {"{{node}}": f"sum by (node) (amqpmesh_node_clients{{{_NODE}}})"},
                  "Connections of clients, by the router that they are connected to."),
            Panel("Deliveries over all links", "timeseries", 8, 8, "mps",
                  {"{{node}}": _rate("amqpmesh_node_deliveries_total", f'{_NODE},direction="in"', "node")},
                  "Deliveries per second that reach a node; a message counts at each node on its path."),
            Panel("Bytes over all links", "timeseries", 8, 8, "Bps",
                  {"{{node}}": _rate("amqpmesh_node_bytes_total", f'{_NODE},direction="in"', "node")},
                  "Bytes of deliveries per second that reach a node."),
        ),
    ),
)  # fmt: skip


def expressions() -> Iterator[str]:
    """Yield the expression of each query and variable of the board."""
    for _, panels in ROWS:
        for panel in panels:
            yield from panel.queries.values()


def grafana_board() -> dict[str, Any]:
    return {
        "title": "amqpmesh",
        "uid": "amqpmesh",
        "description": "A mesh of AMQP routers and brokers. Made by tools/grafana.py of amqpmesh.",
        "tags": ["amqp"],
        "schemaVersion": 38,
        "version": 1,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": list(_variables())},
        "annotations": {"list": []},
        "panels": [{"id": number, **panel} for number, panel in enumerate(_panels(), 1)],
    }


def _variables() -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}}
    for name, metric in (("pattern", "amqpmesh_pattern_producers"), ("node", "amqpmesh_node_up")):
        query = f"label_values({metric}, {name})"
        yield {
            "name": name,
            "label": name.capitalize(),
            "type": "query",
            "datasource": DATA_SOURCE,
            "definition": query,
            "query": {"query": query, "refId": name},
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        }


def _panels() -> Iterator[dict[str, Any]]:
    top = 0
    for title, panels in ROWS:
        yield {"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": _place(0, top, COLUMNS, 1)}
        top, left = top + 1, 0
        for panel in panels:
            yield _panel(panel, left, top)
            left += panel.width
            if left == COLUMNS:
                top, left = top + panel.height, 0


def _panel(panel: Panel, left: int, top: int) -> dict[str, Any]:
    return {
        "type": panel.type,
        "title": panel.title,
        "description": panel.meaning,
        "datasource": DATA_SOURCE,
        "gridPos": _place(left, top, panel.width, panel.height),
        "fieldConfig": {"defaults": {"unit": panel.unit, **_colors(panel)}, "overrides": []},
        "options": _options(panel),
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": DATA_SOURCE,
                "expr": expression,
                "legendFormat": legend,
                "instant": panel.type != "timeseries",
                "range": panel.type == "timeseries",
                "format": "table" if panel.type == "table" else "time_series",
            }
            for number, (legend, expression) in enumerate(panel.queries.items())
        ],
    }


def _place(left: int, top: int, width: int, height: int) -> dict[str, int]:
    return {"x": left, "y": top, "w": width, "h": height}


def _colors(panel: Panel) -> dict[str, Any]:
    if panel.type != "stat":
        return {"min": 0}
    limit = 900 if panel.unit == "s" else 1
    steps = [{"color": "green", "value": None}, {"color": "red", "value": limit}]
    return {"color": {"mode": "thresholds"}, "thresholds": {"mode": "absolute", "steps": steps}}


def _options(panel: Panel) -> dict[str, Any]:
    match panel.type:
        case "stat":
            calculation = {"calcs": ["lastNotNull"], "fields": "", "values": False}
            return {"reduceOptions": calculation, "colorMode": "background", "graphMode": "none"}
        case "timeseries":
            legend = {"displayMode": "list", "placement": "bottom", "showLegend": True}
            return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
    return {"showHeader": True}
