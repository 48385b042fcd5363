"""Each panel of the board for Grafana shows something of a mesh with traffic and a lost node, by Debian's Prometheus.

There is no Grafana here: a query is sent as Grafana sends it, with values in place of its variables.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from proton import ConnectionException, Disposition, Message, Timeout
from proton.utils import BlockingConnection, LinkDetached, SendException

from mesh.deploy.pid_file import PidFile
from mesh.deploy.workdir import WorkDir
from mesh_tests.installed import require
from mesh_tests.interop.test_prometheus import Prometheus
from mesh_tests.ports import free_port
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

BOARD = json.loads((Path(__file__).parents[2] / "docs" / "monitoring" / "grafana.json").read_text())
PANELS: dict[str, Any] = {
    f"{panel['id']} {panel['title']}": panel for panel in BOARD["panels"] if panel["type"] != "row"
}
SOON_S = 60.0
TOPOLOGY = """
mesh: board
watch: {port}
routers:
  r1: {{listeners: [{{}}], connect: [r2]}}
  r2: {{connect: [r3]}}
  r3: {{}}
brokers:
  b1: {{data: ./b1, routers: [r2]}}
addresses:
  rpc.#: anycast
  orders: {{type: queue, dead_letter: orders.dead}}
  orders.dead: queue
"""


class Traffic:
    """Clients of ``url`` until ``stop``: half of what they send is rejected, and one producer has no consumer."""

    def __init__(self, url: str) -> None:
        self._url, self._stopping = url, threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._send, self._receive)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _send(self) -> None:
        connection = BlockingConnection(self._url, timeout=SOON_S)
        connection.create_sender("rpc.nobody")
        senders = [connection.create_sender(address) for address in ("orders", "rpc.tea")]
        while not self._stopping.wait(0.02):
            for sender in senders:
                with suppress(SendException, Timeout):
                    sender.send(Message(body=b"x" * 100), timeout=1.0)
        connection.close()

    def _receive(self) -> None:
        connection = BlockingConnection(self._url, timeout=SOON_S)
        receivers = [connection.create_receiver(address, credit=10) for address in ("orders", "rpc.tea")]
        number = 0
        while not self._stopping.is_set():
            for receiver in receivers:
                with suppress(Timeout):
                    receiver.receive(0.1)
                    receiver.settle(Disposition.REJECTED if number % 4 < 2 else Disposition.ACCEPTED)
            number += 1
        with suppress(ConnectionException, LinkDetached):
            connection.close()


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    require(shutil.which("prometheus") is not None, "Prometheus (Debian: prometheus)")
    with ExitStack() as cleanup:
        mesh = RunningMesh(TOPOLOGY.format(port=free_port()), tmp_path_factory.mktemp("board"))
        cleanup.callback(mesh.down)
        scraper = Prometheus(tmp_path_factory.mktemp("prometheus"), int(urlsplit(mesh.observer_url).port or 0))
        cleanup.callback(scraper.stop)
        cleanup.callback(Traffic(mesh.url("r1")).stop)
        hold = PidFile(WorkDir(mesh.topology_file.parent / ".amqpmesh" / "board").hold_file("r3"))
        # The supervisor would start it again.
        with hold:
            assert hold.acquire()
            mesh.kill("r3")
            yield scraper


def as_grafana_sends(expression: str) -> str:
    text = expression.replace("$__rate_interval", "15s").replace("$pattern", ".*").replace("$node", ".*")
    assert "$" not in text
    return text


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_shows_something_with_the_labels_of_its_legend(prometheus: Prometheus, panel: str) -> None:
    for target in PANELS[panel]["targets"]:
        expression = as_grafana_sends(target["expr"])

        def found(expression: str = expression) -> list[dict[str, Any]]:
            results = prometheus.query(expression)
            return [each for each in results if not math.isnan(float(each["value"][1]))]

        results = wait_until(found, SOON_S, f"a value of {expression}")
        for label in re.findall(r"{{(\w+)}}", target.get("legendFormat", "")):
            assert all(each["metric"].get(label) for each in results), label


@pytest.mark.parametrize(
    "title",
    ["Nodes that do not run", "Neighbors that are not heard", "Producers without credit", "Oldest message in a queue"],
)
def test_a_number_of_what_is_broken_is_not_nought(prometheus: Prometheus, title: str) -> None:
    [panel] = [panel for panel in PANELS.values() if (panel["title"], panel["type"]) == (title, "stat")]
    expression = as_grafana_sends(panel["targets"][0]["expr"])
    wait_until(
        lambda: [each for each in prometheus.query(expression) if float(each["value"][1]) > 0], SOON_S, expression
    )


@pytest.mark.parametrize("variable", BOARD["templating"]["list"][1:], ids=lambda variable: str(variable["name"]))
def test_a_variable_has_values(prometheus: Prometheus, variable: dict[str, Any]) -> None:
    [(metric, label)] = re.findall(r"^label_values\((\w+), (\w+)\)$", variable["query"]["query"])
    assert variable["definition"] == variable["query"]["query"]
    wanted = {"pattern": {"rpc.#", "orders", "orders.dead"}, "node": {"r1", "r2", "r3", "b1"}}[variable["name"]]
    wait_until(
        lambda: {each["metric"][label] for each in prometheus.query(metric)} == wanted, SOON_S, f"values of {label}"
    )
