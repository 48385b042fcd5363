"""A real Prometheus scrapes metrics, with their types and values, and raises the alerts of docs/monitoring/."""

from __future__ import annotations

import json
import shutil
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mesh.watch.expected_nodes import ExpectedNode
from mesh.watch.metrics import CONTENT_TYPE, escape_label, exposition
from mesh_tests.installed import require
from mesh_tests.ports import free_port
from mesh_tests.programs import Program
from mesh_tests.unit.mesh.watch.sample_host import small_mesh
from mesh_tests.unit.mesh.watch.scraped import Scraped
from mesh_tests.waiting import wait_until

RULES = Path(__file__).parents[2] / "docs" / "monitoring" / "alerts.yml"
EXPECTED = (ExpectedNode("r1", "router", ("r2", "r3")), ExpectedNode("r9", "router"))
HOSTILE = 'a"b\\c\nd\u202e<b>\0'
TEXT = "".join((*exposition(small_mesh().model, EXPECTED), f'amqpmesh_hostile{{name="{escape_label(HOSTILE)}"}} 1\n'))
START_S = 30.0


class MetricsHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        content = TEXT.encode()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


class Prometheus:
    """Debian's Prometheus, which scrapes a port each second."""

    def __init__(self, folder: Path, target: int) -> None:
        self._port = free_port()
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "amqpmesh", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))
        command = [
            *("prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"),
            f"--web.listen-address=127.0.0.1:{self._port}",
        ]
        self._program = Program("prometheus", command, folder)

    def query(self, expression: str) -> list[dict[str, Any]]:
        return list(self._get("query?" + urllib.parse.urlencode({"query": expression}))["result"])

    def alerts(self) -> dict[str, dict[str, str]]:
        return {each["labels"]["alertname"]: each["labels"] for each in self._get("alerts")["alerts"]}

    def types(self) -> dict[str, str]:
        return {name: entries[0]["type"] for name, entries in self._get("metadata").items()}

    def stop(self) -> None:
        self._program.stop()

    def _get(self, path: str) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/api/v1/{path}", timeout=10) as answer:
                data: dict[str, Any] = json.load(answer)["data"]
                return data
        except OSError:
            return {"result": [], "alerts": []}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    require(shutil.which("prometheus") is not None, "Prometheus (Debian: prometheus)")
    server = ThreadingHTTPServer(("127.0.0.1", 0), MetricsHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    scraper = Prometheus(tmp_path_factory.mktemp("prometheus"), server.server_port)
    try:
        wait_until(lambda: scraper.query("amqpmesh_node_up"), START_S, "the first scrape")
        yield scraper
    finally:
        scraper.stop()
        server.shutdown()
        thread.join()
        server.server_close()


def test_prometheus_has_every_series_with_its_value(prometheus: Prometheus) -> None:
    wanted = Scraped([TEXT]).values
    found = {
        (labels.pop("__name__"), frozenset(labels.items())): float(each["value"][1])
        for each in prometheus.query('{__name__=~"amqpmesh_.*"}')
        if (labels := {name: value for name, value in each["metric"].items() if name not in ("instance", "job")})
    }
    assert found == wanted
    assert prometheus.query("up")[0]["value"][1] == "1"


def test_a_hostile_name_arrives_as_it_is(prometheus: Prometheus) -> None:
    assert prometheus.query("amqpmesh_hostile")[0]["metric"]["name"] == HOSTILE


def test_prometheus_knows_the_types(prometheus: Prometheus) -> None:
    types = prometheus.types()
    assert types["amqpmesh_pattern_deliveries_total"] == "counter"
    assert types["amqpmesh_node_up"] == "gauge"
    assert types["amqpmesh_pattern_latency_seconds"] == "histogram"


def test_a_quantile_of_latencies_lies_in_their_bucket(prometheus: Prometheus) -> None:
    [found] = prometheus.query('histogram_quantile(0.5, amqpmesh_pattern_latency_seconds_bucket{pattern="rpc.#"})')
    # Most deliveries took 500 us.
    assert 0.000256 <= float(found["value"][1]) <= 0.000512


def test_alerts_are_pending_for_what_is_broken_and_for_nothing_else(prometheus: Prometheus) -> None:
    alerts = wait_until(lambda: len(prometheus.alerts()) > 1 and prometheus.alerts(), START_S, "the alerts")
    assert alerts["AmqpmeshNodeDown"]["node"] == "r9"
    assert alerts["AmqpmeshNeighborMissing"]["neighbor"] == "r3"
    # The observer of the sample is ahead of the clock, so it does not stand still.
    assert alerts.keys() == {"AmqpmeshNodeDown", "AmqpmeshNeighborMissing", "AmqpmeshProducersWait"}
