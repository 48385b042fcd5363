"""Makes docs/monitoring/alerts.yml, alert rules for Prometheus; `mesh_tests/unit/test_monitoring_files.py` compares."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

GUIDE: Final = "docs/how-to/monitor.md"
HEAD: Final = """\
# Alert rules for Prometheus, for a job named amqpmesh. Made by tools/alerts.py; docs/how-to/monitor.md says what each
# alert means and what to do.
groups:
  - name: amqpmesh
    rules:
"""


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule: ``expression`` has held for ``hold``. The texts are templates of Prometheus."""

    name: str
    expression: str
    hold: str
    severity: str
    summary: str
    description: str


ALERTS: Final = (
    Alert(
        "AmqpmeshNodeDown",
        'max by (instance, node, role, state) (amqpmesh_node_state{state=~"lost|silent|unknown"}) == 1',
        "15s",
        "critical",
        "{{ $labels.role }} {{ $labels.node }} is {{ $labels.state }}",
        "lost: the process is gone, and no order ended it. silent: the process is there and does not work. unknown: "
        "the topology has the node on this host, and it never started.",
    ),
    Alert(
        "AmqpmeshNodeRestarts",
        "changes(amqpmesh_node_start_time_seconds[10m]) > 2",
        "0s",
        "warning",
        "{{ $labels.role }} {{ $labels.node }} started {{ $value }} times in 10 minutes",
        "The node ends soon after each start. Its log says why.",
    ),
    Alert(
        "AmqpmeshNeighborMissing",
        "max by (instance, node, neighbor) (amqpmesh_neighbor_up) == 0",
        "30s",
        "critical",
        "router {{ $labels.node }} does not hear its neighbor {{ $labels.neighbor }}",
        "The connection is down, or messages over it are lost. Traffic takes another path, if there is one.",
    ),
    Alert(
        "AmqpmeshNoConsumer",
        'sum by (pattern) (amqpmesh_pattern_waiting_producers{type="anycast"}) > 0 '
        'and sum by (pattern) (amqpmesh_pattern_consumers{type="anycast"}) == 0',
        "1m",
        "critical",
        "nobody receives from {{ $labels.pattern }}, and {{ $value }} producers wait",
        "Producers of an anycast address get no credit while there is no consumer anywhere in the mesh.",
    ),
    Alert(
        "AmqpmeshProducersWait",
        "sum by (pattern, type) (amqpmesh_pattern_waiting_producers) > 0",
        "5m",
        "warning",
        "{{ $value }} producers of {{ $labels.pattern }} have had no credit at times, for 5 minutes",
        "Consumers are too slow or too few, a queue is full, or a broker has no room.",
    ),
    Alert(
        "AmqpmeshQueueOld",
        "max by (node, pattern) (amqpmesh_pattern_queue_oldest_age_seconds) > 900",
        "5m",
        "warning",
        "a message in a queue of {{ $labels.pattern }} at {{ $labels.node }} is {{ $value | humanizeDuration }} old",
        "Nobody takes from the queue, or consumers take less than producers send.",
    ),
    Alert(
        "AmqpmeshQueueNearlyFull",
        "max by (node, pattern) (amqpmesh_pattern_queue_fullest_ratio) > 0.9",
        "1m",
        "warning",
        "a queue of {{ $labels.pattern }} at {{ $labels.node }} has used {{ $value | humanizePercentage }} of its room",
        "The queue is near its max_messages or max_bytes; when_full says what happens to further messages.",
    ),
    Alert(
        "AmqpmeshClientsNearLimit",
        "max by (instance, node) (amqpmesh_node_clients / amqpmesh_node_clients_limit) > 0.9",
        "1m",
        "warning",
        "router {{ $labels.node }} has {{ $value | humanizePercentage }} of the connections that its listeners allow",
        "At the limit of a listener, further clients are refused.",
    ),
    Alert(
        "AmqpmeshDeadLetters",
        "sum by (node, pattern) (increase(amqpmesh_pattern_queue_dead_lettered_total[10m])) > 0",
        "0s",
        "warning",
        "messages of {{ $labels.pattern }} at {{ $labels.node }} moved to the dead-letter queue",
        "Consumers rejected these messages, or failed with them too often.",
    ),
    Alert(
        "AmqpmeshDeliveriesDelayed",
        'sum by (pattern, type) (rate(amqpmesh_pattern_deliveries_delayed_10s_total{direction="in"}[5m])) '
        '/ sum by (pattern, type) (rate(amqpmesh_pattern_deliveries_total{direction="in"}[5m])) > 0.01',
        "5m",
        "warning",
        "{{ $value | humanizePercentage }} of the deliveries to {{ $labels.pattern }} take 10 s or longer",
        "The time from the arrival at the mesh to the outcome: consumers settle late, or a broker stores slowly.",
    ),
    Alert(
        "AmqpmeshRecordsLost",
        "sum by (instance, node) (increase(amqpmesh_node_records_dropped_total[5m]) "
        "+ increase(amqpmesh_node_records_missed_total[5m])) > 0 "
        "and max by (instance, node) (time() - amqpmesh_node_counted_since_timestamp_seconds) > 300",
        "0s",
        "warning",
        "metrics of {{ $labels.node }} are too small: records were lost",
        "The link log writer or the observer did not keep up with the node. Messages are not lost.",
    ),
    Alert(
        "AmqpmeshObserverStalled",
        "time() - amqpmesh_observer_read_timestamp_seconds > 10",
        "30s",
        "warning",
        "the observer on {{ $labels.instance }} has not read the nodes' records for {{ $value | humanizeDuration }}",
        "All metrics of this host are old. The nodes do not need the observer.",
    ),
    Alert(
        "AmqpmeshObserverDown",
        'up{job="amqpmesh"} == 0',
        "1m",
        "critical",
        "Prometheus cannot scrape {{ $labels.instance }}",
        "The observer, its host, or the way to the host is down. No other alert of the host is raised meanwhile.",
    ),
)


def alert_rules() -> str:
    return HEAD + "".join(line + "\n" for alert in ALERTS for line in _rule(alert))


def _rule(alert: Alert) -> Iterator[str]:
    # A text in JSON is a text in YAML.
    yield f"      - alert: {alert.name}"
    yield f"        expr: {json.dumps(alert.expression)}"
    yield f"        for: {alert.hold}"
    yield f"        labels: {{severity: {alert.severity}}}"
    yield "        annotations:"
    yield f"          summary: {json.dumps(alert.summary)}"
    yield f"          description: {json.dumps(alert.description)}"
    yield f"          runbook: {GUIDE}#{alert.name.lower()}"
