"""Changes over REST of a mesh of processes: queues, a client's connection, a cost, a level; and who may not."""

from __future__ import annotations

import base64
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from addressing.topology.credentials import make_secret
from mesh.deploy.pid_file import PidFile
from mesh.deploy.workdir import WorkDir
from mesh_tests.conftest import StartMesh
from mesh_tests.live.wire_client import WireClient
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED

TOPOLOGY = """
mesh: changed
watch: "on"
routers: {r1: {connect: [r2]}, r2: {}}
brokers: {b1: {data: ./data}}
addresses: {work/#: anycast, kept/#: queue}
"""
LONG_S = 30.0
KEYS = (f"key-{number}" for number in itertools.count())


class Rest:
    """The REST interface of the mesh's observer, with the owner's token."""

    def __init__(self, mesh: RunningMesh) -> None:
        folder = mesh.control_socket("r1").parent
        file = folder / "_watch.json"
        self.url = wait_until(lambda: json.loads(file.read_text())["url"] if file.exists() else None, LONG_S, "a URL")
        self.token_file = folder / "_watch.token"
        self.audit_folder = folder.parent / "audit"

    def ask(self, path: str, body: Any = None, method: str = "GET", **headers: str) -> tuple[int, Any]:
        named = {"Authorization": f"Bearer {self.token_file.read_text().strip()}", **headers}
        data = None if body is None else json.dumps(body).encode()
        try:
            answer = urlopen(Request(self.url + path, data, named, method=method), timeout=LONG_S)
        except HTTPError as error:
            answer = error
        with answer:
            return answer.status, json.load(answer)

    def write(self, path: str, body: Any, method: str = "POST", **headers: str) -> tuple[int, Any]:
        named = {"Content-Type": "application/json", "Idempotency-Key": next(KEYS), **headers}
        return self.ask(path, body, method, **named)

    def items(self, path: str) -> list[dict[str, Any]]:
        status, page = self.ask(path)
        assert status == 200, page
        found: list[dict[str, Any]] = page["items"]
        return found

    def one(self, path: str) -> dict[str, Any]:
        """The only item of a page, once there is one."""
        return wait_until(lambda: next(iter(self.items(path)), None), LONG_S, path)


@pytest.fixture(scope="module")
def mesh(start_module_mesh: StartMesh) -> RunningMesh:
    return start_module_mesh(TOPOLOGY)


@pytest.fixture
def rest(mesh: RunningMesh) -> Rest:
    return Rest(mesh)


def queue_of(rest: Rest, address: str, depth: int) -> str:
    found = rest.one(f"/api/queues?filter=address={address}&filter=depth={depth}")
    return str(found["id"])


@pytest.fixture
def producer(mesh: RunningMesh) -> Iterator[WireClient]:
    with WireClient(mesh.port("r1")) as client:
        yield client


def send(client: WireClient, sender: Any, count: int) -> None:
    for number in [client.send_when_due(sender) for _ in range(count)]:
        assert client.wait_outcome(number) == ACCEPTED


def test_a_purge_of_what_was_shown_drops_nothing_newer(rest: Rest, producer: WireClient) -> None:
    sender = producer.sender("kept/shown")
    send(producer, sender, 20)
    id_ = queue_of(rest, "kept/shown", 20)
    status, shown = rest.ask(f"/api/queues/{id_}/messages?limit=20")
    assert (status, len(shown["messages"])) == (200, 20), shown
    # The producer goes on.
    send(producer, sender, 7)
    body = {"up_to": shown["messages"][-1]["number"], "expect": {"address": "kept/shown"}}
    status, would = rest.write(f"/api/queues/{id_}/purge?dry_run=true", body)
    assert (status, would["would"]["messages"]) == (200, 20), would
    status, done = rest.write(f"/api/queues/{id_}/purge", body, **{"Idempotency-Key": "purge-once"})
    assert (status, done["done"]["messages"]) == (200, 20), done
    send(producer, sender, 3)
    # The same request again, as after an answer that was lost, purges nothing.
    assert rest.write(f"/api/queues/{id_}/purge", body, **{"Idempotency-Key": "purge-once"}) == (200, done)
    left = rest.ask(f"/api/queues/{id_}/messages?limit=50")[1]["messages"]
    assert len(left) == 10
    assert min(message["number"] for message in left) > body["up_to"]
    audited = rest.items("/api/audit?operation=purge")
    assert [each["outcome"] for each in audited] == ["repeated", "done", "counted"]
    assert audited[1]["before"] == {"messages": 27}
    assert audited[1]["after"] == {"messages": 7}
    assert audited[1]["what"] == {"address": "kept/shown"}


def test_messages_are_moved_sent_again_and_removed(rest: Rest, producer: WireClient) -> None:
    send(producer, producer.sender("kept/a"), 3)
    id_ = queue_of(rest, "kept/a", 3)
    numbers = [each["number"] for each in rest.ask(f"/api/queues/{id_}/messages")[1]["messages"]]
    status, done = rest.write(f"/api/queues/{id_}/move", {"target": "kept/b", "numbers": numbers[:1]})
    assert (status, done["done"]["messages"]) == (200, 1), done
    status, done = rest.write(f"/api/queues/{id_}/remove", {"numbers": numbers})
    assert (status, done["done"]["messages"], done["done"]["missing"]) == (200, 2, numbers[:1]), done
    message = {"subject": "again", "body": {"kind": "json", "text": '{"order": 7}'}}
    status, done = rest.write(f"/api/queues/{id_}/send", {"message": message})
    assert (status, done["done"]["messages"]) == (200, 1), done
    status, page = rest.ask(f"/api/queues/{id_}/messages?bodies=true")
    (shown,) = page["messages"]
    assert (shown["subject"], shown["body"]["text"]) == ("again", '{"order": 7}')
    other = queue_of(rest, "kept/b", 1)
    status, refused = rest.write(f"/api/queues/{other}", {}, "DELETE")
    assert (status, "1 message that waits" in refused["error"]) == (409, True), refused
    status, done = rest.write(f"/api/queues/{other}", {"force": True}, "DELETE")
    assert (status, done["after"]) == (200, {"exists": False}), done


def test_a_connection_and_a_link_of_a_client_are_closed(mesh: RunningMesh, rest: Rest) -> None:
    with WireClient(mesh.port("r1"), container_id="stuck") as client:
        link = client.receiver("work/1", credit=1)
        found = rest.one("/api/links?filter=container=stuck")
        status, done = rest.write(f"/api/links/{found['id']}/close", {"reason": "it is stuck"})
        assert (status, done["done"]) == (200, {"links": 1}), done
        client.wait(lambda: link.is_gone, "the link to be closed", outlasts_detach=True)
        connection = rest.one("/api/connections?filter=container=stuck")
        status, done = rest.write(f"/api/connections/{connection['id']}/trace", {"seconds": 30})
        assert (status, done["done"]["seconds"], Path(done["done"]["file"]).exists()) == (200, 30, True), done
        body = {"reason": "it is stuck", "expect": {"container": "stuck"}}
        status, done = rest.write(f"/api/connections/{connection['id']}/close", body)
        assert (status, done["done"]["connections"]) == (200, 1), done
    wait_until(lambda: not rest.items("/api/connections?filter=container=stuck"), LONG_S, "the connection to be gone")
    assert rest.items("/api/audit?operation=close-connection")[0]["what"]["container"] == "stuck"


def test_a_cost_and_a_level_are_set(rest: Rest) -> None:
    rest.one("/api/neighbors?filter=id=r1/r2")
    status, done = rest.write("/api/neighbors/r1/r2/cost", {"cost": 9})
    assert (status, done["done"]["cost_before"]) == (200, 1), done
    for id_ in ("r1/r2", "r2/r1"):
        wait_until(lambda id_=id_: rest.items(f"/api/neighbors?filter=id={id_}&filter=cost=9"), LONG_S, "the cost")
    status, done = rest.write("/api/nodes/r1/log-level", {"module": "", "level": "warning"})
    assert status == 200, done
    assert [(each["operation"], each["outcome"]) for each in rest.items("/api/audit?limit=2")] == [
        ("log-level", "done"), ("cost", "done"),
    ]  # fmt: skip


def test_changes_by_commands_are_in_the_audit_too(mesh: RunningMesh, rest: Rest, producer: WireClient) -> None:
    send(producer, producer.sender("kept/by-command"), 4)
    mesh.run("broker", "purge", "kept/by-command", "--yes")
    mesh.run("cost", "r1", "r2", "3")
    mesh.run("cost", "r1", "r2", "1")
    mesh.run("log-level", "r1", "router.routes", "info")
    told = [each for each in rest.items("/api/audit") if each["login"] == "command"]
    assert [(each["operation"], each["target"], each["outcome"]) for each in told] == [
        ("log-level", "r1", "done"), ("cost", "r1/r2", "done"), ("cost", "r1/r2", "done"), ("purge", "b1", "done"),
    ]  # fmt: skip
    assert told[-1]["what"] == {"address": "kept/by-command"}
    assert told[-1]["done"] == {"messages": 4}
    # The observer's next line goes on with the count.
    assert rest.write("/api/nodes/r1/log-level", {"module": "", "level": "info"})[0] == 200
    assert rest.items("/api/audit?limit=2")[0]["number"] == told[0]["number"] + 1


def test_events_of_all_nodes_are_there_newest_first(rest: Rest) -> None:
    events = rest.items("/api/events?limit=1000")
    assert {"r1", "r2", "b1", "_supervisor", "_watch"} <= {each["node"] for each in events}
    assert [each["at"] for each in events] == sorted((each["at"] for each in events), reverse=True)


def test_without_the_token_everybody_looks_and_nobody_changes(rest: Rest) -> None:
    nobody = {"Authorization": ""}
    assert rest.ask("/api/me", **nobody)[1] == {
        "user": "anonymous", "is_owner": False, "view": ["#"], "browse": ["#"], "manage": []
    }  # fmt: skip
    assert rest.ask("/api/queues", **nobody)[0] == 200
    for path in ("/api/neighbors/r1/r2/cost", "/api/neighbors/r1/r2/cost?dry_run=true"):
        assert rest.write(path, {"cost": 5}, **nobody)[0] == 401
    assert rest.items("/api/neighbors?filter=id=r1/r2")[0]["cost"] != 5


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another account")
def test_another_account_of_the_host_reads_no_token_and_gets_401(rest: Rest) -> None:
    # Without imports, as another account may not read Python's own files.
    script = (
        "import json, os, socket, sys\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "found = []\n"
        "for path in sys.argv[3:]:\n"
        "    try: open(path); found.append(path)\n"
        "    except PermissionError: pass\n"
        "with socket.socket() as connection:\n"
        "    connection.connect(('127.0.0.1', int(sys.argv[1])))\n"
        "    connection.sendall(f'POST {sys.argv[2]} HTTP/1.1\\r\\nHost: localhost\\r\\nIdempotency-Key: k\\r\\n'\n"
        "        'Content-Type: application/json\\r\\nContent-Length: 11\\r\\n\\r\\n{\"cost\": 5}'.encode())\n"
        "    status = int(connection.recv(4096).split()[1])\n"
        "print(json.dumps([status, found]))\n"
    )
    files = [rest.token_file, *rest.audit_folder.iterdir()]
    assert {"audit.jsonl", "keys.jsonl"} <= {file.name for file in files}
    for file in files:
        assert file.stat().st_mode & 0o077 == 0
    arguments = [rest.url.rpartition(":")[2], "/api/neighbors/r1/r2/cost", *map(str, files)]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True, timeout=LONG_S
    )
    assert json.loads(done.stdout) == [401, []]


def test_a_user_changes_what_is_his_and_a_broker_that_is_down_is_a_502(start_mesh: StartMesh) -> None:
    mesh = start_mesh(f"""
mesh: kinds
watch: "on"
routers: {{r1: {{listeners: [{{authentication: optional}}]}}}}
brokers: {{b1: {{data: ./data}}}}
addresses: {{kept: queue, other: queue}}
users:
  keeper: {{password: "{make_secret("hers", iterations=4096)}", manage: [kept]}}
  anonymous: {{send: ["#"]}}
""")
    rest, keeper = Rest(mesh), {"Authorization": f"Basic {base64.b64encode(b'keeper:hers').decode()}"}
    with WireClient(mesh.port("r1")) as client:
        for address in ("kept", "other"):
            send(client, client.sender(address), 2)
    own, other = queue_of(rest, "kept", 2), queue_of(rest, "other", 2)
    assert [each["id"] for each in rest.ask("/api/queues", **keeper)[1]["items"]] == [own]
    status, done = rest.write(f"/api/queues/{own}/purge", {"up_to": 1000}, **keeper)
    assert (status, done["done"]["messages"]) == (200, 2), done
    assert rest.write(f"/api/queues/{other}/purge", {"up_to": 1000}, **keeper)[0] == 404
    assert rest.ask("/api/audit", **keeper)[0] == 403
    hold = PidFile(WorkDir(rest.audit_folder.parent).hold_file("b1"))
    with hold:
        assert hold.acquire()
        mesh.kill("b1")
        wait_until(lambda: rest.items("/api/nodes?filter=name=b1&filter=state=lost"), LONG_S, "b1 to be lost")
        status, refused = rest.write(f"/api/queues/{other}/purge", {"up_to": 1000})
        assert (status, "amqpmesh status" in refused["error"]) == (502, True), refused
    assert [each["status"] for each in rest.items("/api/audit")] == [502, 404, 200]
