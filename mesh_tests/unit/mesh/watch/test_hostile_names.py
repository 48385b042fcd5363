"""Names that are markup, control characters or long come out of each answer of the observer as they went in."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from addressing.operator_rights import OWNER
from addressing.topology.loader import parse_topology
from mesh.terminal.output import one_line
from mesh.watch.management.answering import Question, answer, run
from mesh.watch.management.dispatch_entities import TYPES
from mesh.watch.management.entity_types import ManagedNode
from mesh.watch.management.protocol import ManagementRequest
from mesh.watch.metric_table import DETAIL_GROUPS
from mesh_tests.hostile_texts import hostile_texts
from mesh_tests.unit.mesh.watch.management.test_answering import read
from mesh_tests.unit.mesh.watch.sample_host import add, opened
from mesh_tests.unit.mesh.watch.writing_host import PLAIN, WritingHost
from recording.columns import COLUMNS, RecordKind
from recording.entities import ENTITIES

CHOSEN = {"container", "user", "remote_address", "address", "name", "mechanism", "tls_version", "tls_cipher"}
"""Columns with text that a peer chooses, or that comes from what a peer chooses."""
NUMBERS: dict[RecordKind, dict[str, Any]] = {
    RecordKind.CONNECTION: {"connection": 1, "role": "client"},
    RecordKind.LINK: {"connection": 1, "link": 2, "role": "producer", "direction": "incoming"},
    RecordKind.QUEUE: {"queue": 3, "depth_count": 1, "depth_bytes": 10, "acquired_count": 0},
}


def columns_of(kind: RecordKind) -> list[str]:
    return [column.name for column in COLUMNS if kind in column.kinds and column.name in CHOSEN]


def texts_by_kind() -> st.SearchStrategy[dict[RecordKind, dict[str, str]]]:
    return st.fixed_dictionaries(
        {kind: st.fixed_dictionaries({name: hostile_texts() for name in columns_of(kind)}) for kind in NUMBERS}
    )


def host_with(folder: Path, texts: dict[RecordKind, dict[str, str]]) -> WritingHost:
    host = WritingHost(folder, "")
    router, broker = host.sample.node("r1"), host.sample.node("b1", "broker")
    for kind, columns in texts.items():
        add(broker if kind is RecordKind.QUEUE else router, opened(kind, **NUMBERS[kind], **columns))
    return host


def strings_in(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value}
    if isinstance(value, dict):
        return {text for each in (*value, *value.values()) for text in strings_in(each)}
    return {text for each in value for text in strings_in(each)} if isinstance(value, list) else set()


@settings(deadline=None, max_examples=6, suppress_health_check=list(HealthCheck))
@given(texts_by_kind())
def test_each_answer_over_http_has_the_names_and_nothing_of_them_breaks_it(
    texts: dict[RecordKind, dict[str, str]],
) -> None:
    with TemporaryDirectory() as folder:
        host = host_with(Path(folder), texts)
        told: set[str] = set()
        paths = ["/api", "/console/map", "/console/clients", "/console/model", "/openapi.json", "/healthz/mesh"]
        paths += [f"/api/{entity.plural}" for entity in ENTITIES]
        paths += ["/api/connections/r1/1", "/api/links/r1/2", "/api/queues/b1/3", "/api/events", "/api/audit"]
        for path in paths:
            got = host.ask("GET", path)
            assert got.status_code in (200, 404, 503), path
            # In ASCII, without a raw character of control, and never as a page.
            assert all(32 <= byte < 128 for byte in got.content), path
            assert got.headers["content-type"] == "application/json"
            assert got.headers["x-content-type-options"] == "nosniff"
            told |= strings_in(json.loads(got.content))
        for kind, columns in texts.items():
            for name in {"address"} & columns.keys() or {"container", "user", "remote_address"}:
                assert columns[name] in told, (kind, name)
        host.stopping.set()
        assert "set-cookie" not in host.ask("GET", "/api/stream?entity=links").headers


@settings(deadline=None, max_examples=6, suppress_health_check=list(HealthCheck))
@given(texts_by_kind())
def test_metrics_have_the_names_as_labels_and_no_series_of_their_own(texts: dict[RecordKind, dict[str, str]]) -> None:
    with TemporaryDirectory() as folder:
        host = host_with(Path(folder), texts)
        for path in ("/metrics", *(f"/metrics/detailed?family={group.name}" for group in DETAIL_GROUPS)):
            got = host.ask("GET", path)
            assert got.status_code == 200
            for family in text_string_to_metric_families(got.content.decode()):
                assert family.name.startswith("amqpmesh_")
                assert all(sample.name.startswith("amqpmesh_") for sample in family.samples)


@settings(deadline=None, max_examples=6, suppress_health_check=list(HealthCheck))
@given(texts_by_kind())
def test_management_answers_with_the_names_for_every_type(texts: dict[RecordKind, dict[str, str]]) -> None:
    # Names come from peers in UTF-8, and AMQP has no other text: half of a surrogate pair cannot come here.
    for columns in texts.values():
        columns.update({name: text.encode(errors="replace").decode() for name, text in columns.items()})
    with TemporaryDirectory() as folder:
        host, topology = host_with(Path(folder), texts), parse_topology(PLAIN)
        for node in ("r1", "b1"):
            managed = ManagedNode(host.host, host.host.nodes[node], topology)
            for type_ in TYPES:
                request = ManagementRequest("x", "c", {"operation": "QUERY", "entityType": type_.name}, {})
                body = read(run(answer(Question(request, managed, OWNER)))).body
                assert all(len(row) == len(body["attributeNames"]) for row in body["results"])


@given(hostile_texts())
def test_a_line_of_the_terminal_stays_one_line_that_nobody_can_color(text: str) -> None:
    assert all(char.isprintable() for char in one_line(text))
