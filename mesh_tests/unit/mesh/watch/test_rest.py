"""The REST interface of the observer over ASGI: who is answered, errors, streams, and the description."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import Any
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from addressing.operator_rights import OWNER, Operator
from addressing.topology.credentials import make_secret
from addressing.topology.loader import parse_topology
from mesh.watch.access import Access, LoginKind, Requester
from mesh.watch.expected_nodes import ExpectedNode
from mesh.watch.host_model import HostModel, NodeRecords
from mesh.watch.rest import MAX_STREAMS, MAX_STREAMS_OF_ONE, ObserverState, application
from mesh.watch.slots import RingRecords
from mesh.watch.visible_rows import RowsByOperator
from recording.entities import BY_PLURAL, ENTITIES, LISTS

URL = "http://127.0.0.1:15680"
HOSTILE = ["<script>alert(1)</script>", "\u202etxt.exe", "a\0b", "x" * 65_536, "'\"\\", "café/%2e%2e/", "\U0001f600"]


PLAIN = "mesh: m\nrouters: {r1: {}}\naddresses: {'#': anycast}\n"
WITH_USERS = f'{PLAIN}users: {{alice: {{password: "{make_secret("hers", iterations=4096)}"}}}}\n'


def state_of(token: str | None = None, addresses: tuple[str, ...] = ("a",)) -> ObserverState:
    host = HostModel(lambda address: ("#", "anycast"), [("#", "anycast")])
    rows: list[dict[str, Any]] = [{"kind": "connection", "event": "opened", "connection": 1, "role": "client"}]
    for number, address in enumerate(addresses, 1):
        rows.append(
            {"kind": "link", "event": "opened", "link": number, "connection": 1, "role": "producer", "address": address}
        )
    NodeRecords(host, host.node("r1"), 0.0).add(RingRecords(rows=[(1, row) for row in rows]))
    # A mesh has users if its test needs the token.
    topology = parse_topology(PLAIN if token is None else WITH_USERS)
    access = Access(topology, token or "secret", lambda: host.utc_s)
    return ObserverState("m", "1.0", host, access, RowsByOperator(host, topology), is_complete=True)


def client_of(state: ObserverState, **headers: str) -> TestClient:
    return TestClient(application(state), base_url=URL, headers=headers)


def test_the_index_leads_to_all_entities_and_each_of_them_answers() -> None:
    client = client_of(state_of())
    index = client.get("/api").json()
    assert index["mesh"] == "m"
    assert set(index["entities"]) == set(BY_PLURAL)
    assert {name: tuple(each["fields"]) for name, each in index["lists"].items()} == {
        each.plural: each.names for each in LISTS
    }
    for name, entity in index["entities"].items():
        page = client.get(entity["href"]).json()
        for item in page["items"]:
            assert tuple(item) == BY_PLURAL[name].names
            assert client.get(f"{entity['href']}/{quote(item['id'])}").json() == item


def test_a_wrong_parameter_is_answered_by_400_with_the_place_and_what_is_allowed() -> None:
    answer = client_of(state_of()).get("/api/links?sort=sise")
    assert answer.status_code == 400
    assert answer.json()["place"] == "sort"
    assert answer.json()["error"] == "links have no field 'sise'"
    assert "rate" in answer.json()["allowed"]


@pytest.mark.parametrize("path", ["/api/lynx", "/api/links/r1/99", "/nothing", "/api/lynx/1"])
def test_what_is_not_there_is_answered_by_404_with_a_sentence(path: str) -> None:
    answer = client_of(state_of()).get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written_by_another_method(method: str) -> None:
    client = client_of(state_of("secret"), authorization="Bearer secret")
    assert client.request(method, "/api/links").status_code == 405
    assert client_of(state_of()).request(method, "/api/links").status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:15680", "", "127.0.0.1:x"])
def test_a_request_under_another_name_of_the_host_is_refused(host: str) -> None:
    answer = client_of(state_of()).get("/api", headers={"host": host})
    assert answer.status_code == 421
    assert "expected 127.0.0.1 or localhost" in answer.json()["error"]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:15680", "localhost:15680", "LOCALHOST", "[::1]:15680", "[::1]"]
)
def test_a_request_under_this_hosts_own_name_is_answered(host: str) -> None:
    assert client_of(state_of()).get("/api", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", "Basic secret", "Bearer secret2", "Bearer sécret"])
@pytest.mark.parametrize("path", ["/api", "/api/links", "/api/links/r1/1", "/openapi.json", "/api/stream?entity=links"])
def test_with_users_nothing_is_told_without_the_token(path: str, given: str) -> None:
    answer = client_of(state_of("secret")).get(path, headers={"authorization": given.encode()})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer, Basic realm="amqpmesh", charset="UTF-8"'
    assert "r1" not in answer.text


def test_with_users_a_request_with_the_token_is_answered() -> None:
    assert client_of(state_of("secret"), authorization="Bearer secret").get("/api/links").json()["total"] == 1


def test_no_answer_may_be_framed_cached_or_guessed() -> None:
    for answer in (client_of(state_of()).get("/api"), client_of(state_of("s")).get("/api")):
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("address", HOSTILE)
def test_any_name_comes_back_as_it_is(address: str) -> None:
    items = client_of(state_of(addresses=(address,))).get("/api/addresses").json()["items"]
    assert [item["address"] for item in items] == [address]


def test_the_description_has_each_path_and_each_field() -> None:
    description = client_of(state_of()).get("/openapi.json").json()
    assert description["openapi"] == "3.1.0"
    for entity in ENTITIES:
        assert f"/api/{entity.plural}" in description["paths"]
        schema = description["components"]["schemas"][entity.name]
        assert tuple(schema["properties"]) == entity.names
        assert all(each["description"] for each in schema["properties"].values())


def test_a_stream_of_unknown_entities_is_refused() -> None:
    answer = client_of(state_of()).get("/api/stream?entity=lynx")
    assert answer.status_code == 400
    assert answer.json()["place"] == "entity"


def test_a_stream_begins_with_the_page_and_ends_with_the_observer() -> None:
    state = state_of()
    state.stopping.set()
    assert client_of(state).get("/api/stream?entity=links").text == ""
    assert len(state.streams) == 0


def events_in(text: str) -> list[tuple[str, Any]]:
    found = []
    for block in text.split("\n\n"):
        if block.startswith("event: "):
            name, _, data = block.removeprefix("event: ").partition("\ndata: ")
            found.append((name, json.loads(data)))
    return found


def test_a_stream_tells_what_changed_and_what_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mesh.watch.rest.STREAM_S", 0.0)
    state = state_of(addresses=("a", "b"))
    records = NodeRecords(state.host, state.host.node("r1"), 0.0)
    steps = iter([
        lambda: records.add(RingRecords(rows=[(2, {"kind": "link", "event": "closed", "link": 1})])),
        lambda: None,
        lambda: records.add(RingRecords(rows=[(3, {"kind": "credit", "event": "changed", "link": 2, "credit": 7})])),
        state.stopping.set,
    ])  # fmt: skip
    original = state.host.states

    def states(entity: Any) -> Any:
        found = list(original(entity))
        # The next change is made behind each look.
        next(steps)()
        return found

    monkeypatch.setattr(state.host, "states", states)
    told = events_in(client_of(state).get("/api/stream?entity=links&fields=address,credit").text)
    assert [name for name, _ in told] == ["all", "changes", "changes"]
    assert [item["id"] for item in told[0][1]["items"]] == ["r1/1", "r1/2"]
    assert (told[1][1]["items"], told[1][1]["gone"], told[1][1]["order"]) == ([], ["r1/1"], ["r1/2"])
    assert told[2][1]["items"] == [{"id": "r1/2", "address": "b", "credit": 7}]
    assert len(state.streams) == 0


def test_nobody_has_all_streams_and_others_get_theirs() -> None:
    state = state_of()
    owner = {"authorization": "Bearer secret"}
    state.stopping.set()
    with ExitStack() as streams:
        for _ in range(MAX_STREAMS_OF_ONE):
            streams.enter_context(state.streams.taken(Requester(OWNER, LoginKind.SESSION)))
        refused = client_of(state).get("/api/stream?entity=links", headers=owner)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert "25 streams of yours are under way" in refused.json()["error"]
        assert client_of(state).get("/api/stream?entity=links").status_code == 200
        for number in range(MAX_STREAMS - MAX_STREAMS_OF_ONE):
            streams.enter_context(state.streams.taken(Requester(Operator(f"u{number}", {}), LoginKind.SESSION)))
        refused = client_of(state).get("/api/stream?entity=links")
        assert (refused.status_code, "100 streams are under way" in refused.json()["error"]) == (503, True)
    assert client_of(state).get("/api/stream?entity=links", headers=owner).status_code == 200
    assert len(state.streams) == 0


def test_without_a_login_each_address_behind_a_proxy_has_streams_of_its_own() -> None:
    state = state_of()
    state.stopping.set()
    one, other = {"x-forwarded-for": "192.0.2.7"}, {"x-forwarded-for": "192.0.2.7, 192.0.2.8"}
    with ExitStack() as streams:
        for _ in range(MAX_STREAMS_OF_ONE):
            streams.enter_context(state.streams.taken(Requester(Operator("", {}), LoginKind.NONE, source="192.0.2.7")))
        assert client_of(state).get("/api/stream?entity=links", headers=one).status_code == 429
        assert client_of(state).get("/api/stream?entity=links", headers=other).status_code == 200
        assert client_of(state).get("/api/stream?entity=links").status_code == 200


def test_metrics_are_those_of_the_model() -> None:
    answer = client_of(state_of()).get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert [(s.labels["node"], s.value) for s in families["amqpmesh_node_links"].samples] == [("r1", 1.0)]


def test_metrics_in_detail_are_refused_with_the_place() -> None:
    client = client_of(state_of())
    assert 'address="a"' in client.get("/metrics/detailed?family=address&match=a").text
    answer = client.get("/metrics/detailed?family=addresses")
    assert (answer.status_code, answer.json()["place"]) == (400, "family")


def test_health_is_told_by_status_and_sentences() -> None:
    state = state_of()
    state.host.on_time(time.time())
    state.expected = lambda: (ExpectedNode("r1", "router", ("r2",), ("r2",)),)
    client = client_of(state)
    assert client.get("/livez").json()["ok"] is True
    assert client.get("/livez?node=r9").status_code == 503
    for path in ("/readyz", "/healthz/mesh"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["ok"]) == (503, False)
        assert any("r2" in sentence for sentence in answer.json()["sentences"])
    state.expected = lambda: (ExpectedNode("r1", "router"),)
    assert client.get("/readyz").status_code == 200
    state.expected = tuple
    assert client.get("/readyz").json()["sentences"] == ["no node of the topology was seen on this host yet"]


@pytest.mark.parametrize(
    ("path", "place", "allowed"),
    [("/livez?nod=r1", "nod", ["node"]), ("/readyz?node=r1", "node", []), ("/healthz/mesh?x=1", "x", [])],
)
def test_health_of_an_unknown_parameter_is_refused_and_not_told_of_something_else(
    path: str, place: str, allowed: list[str]
) -> None:
    state = state_of()
    state.host.on_time(time.time())
    answer = client_of(state).get(path)
    assert (answer.status_code, answer.json()["place"], answer.json()["allowed"]) == (400, place, allowed)


@pytest.mark.parametrize("path", ["/metrics", "/metrics/detailed?family=address"])
def test_counters_are_told_once_all_that_was_recorded_has_been_read(path: str) -> None:
    state = state_of()
    state.is_complete = False
    answer = client_of(state).get(path)
    assert answer.status_code == 503
    assert "still reads what the nodes have recorded" in answer.json()["error"]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_somebody_else_cannot_ask(site: str) -> None:
    for state in (state_of(), state_of("secret")):
        headers = {"authorization": "Bearer secret", "sec-fetch-site": site}
        assert client_of(state).get("/api/links", headers=headers).status_code == 403
        # A link that leads here is harmless: the page behind it stays this observer's own.
        assert client_of(state).get("/api", headers={**headers, "sec-fetch-mode": "navigate"}).status_code == 200


def test_with_users_only_the_observers_own_life_is_told_without_the_token() -> None:
    state = state_of("secret")
    state.host.on_time(time.time())
    client = client_of(state)
    assert client.get("/livez").status_code == 200
    for path in ("/livez?node=r1", "/readyz", "/healthz/mesh", "/metrics", "/metrics/detailed?family=address"):
        assert client.get(path).status_code == 401
