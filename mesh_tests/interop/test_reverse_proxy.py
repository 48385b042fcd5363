"""The console behind Debian's nginx, with the configuration of docs/how-to/console.md: login, page, stream, change."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from addressing.topology.credentials import make_secret
from mesh_tests.installed import require
from mesh_tests.ports import free_port
from mesh_tests.programs import Program
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "console.md"
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin")
NAME = "console.example.com"
ORIGIN = f"https://{NAME}"
SOON_S = 30.0
LEVEL = {"module": "router.routes", "level": "debug"}


class ProxiedConsole:
    """Debian's nginx before the observer of ``mesh``; requests as a browser sends them to the proxy's name."""

    def __init__(self, mesh: RunningMesh, folder: Path) -> None:
        folder.mkdir()
        self._certificate, key = folder / "console.pem", folder / "console.key"
        made = [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}"),
            *("-addext", f"subjectAltName=DNS:{NAME}", "-keyout", key, "-out", self._certificate),
        ]
        subprocess.run(made, check=True, capture_output=True)
        self.observer = urlsplit(mesh.observer_url).netloc
        self._port = free_port()
        [block] = re.findall(r"```nginx\n(.*?)```", GUIDE.read_text(), re.DOTALL)
        for documented, own in (
            ("127.0.0.1:15680", self.observer),
            ("listen 443 ssl", f"listen 127.0.0.1:{self._port} ssl"),
            ("/etc/ssl/console.pem", str(self._certificate)),
            ("/etc/ssl/console.key", str(key)),
        ):
            assert documented in block
            block = block.replace(documented, own)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "\n".join(f"{kind}_temp_path {folder / kind};" for kind in kinds)
        file = folder / "nginx.conf"
        file.write_text(
            f"daemon off;\npid {folder / 'nginx.pid'};\nevents {{}}\nhttp {{\naccess_log off;\n{paths}\n{block}}}\n"
        )
        command = [str(NGINX), "-c", str(file), "-p", str(folder), "-e", "stderr"]
        self._program = Program("nginx", command, folder)
        wait_until(self._is_there, SOON_S, "nginx")

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, http.client.HTTPMessage, str]:
        with self.asking(method, path, body, **headers) as answer:
            return answer.status, answer.msg, answer.read().decode()

    @contextmanager
    def asking(self, method: str, path: str, body: Any = None, **headers: str) -> Iterator[http.client.HTTPResponse]:
        """Send a request; yield its answer, of which the head has come."""
        context = ssl.create_default_context(cafile=str(self._certificate))
        plain = socket.create_connection(("127.0.0.1", self._port), SOON_S)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        data = None
        if body is not None:
            named["content-type"], data = "application/json", json.dumps(body)
        with context.wrap_socket(plain, server_hostname=NAME) as encrypted:
            connection = http.client.HTTPConnection(NAME)
            connection.sock = encrypted
            connection.request(method, path, data, named)
            with closing(connection.getresponse()) as answer:
                yield answer

    def stop(self) -> None:
        self._program.stop()

    def _is_there(self) -> bool:
        assert self._program.is_running
        try:
            socket.create_connection(("127.0.0.1", self._port)).close()
        except OSError:
            return False
        return True


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    require(NGINX is not None, "a reverse proxy (Debian: nginx-light)")
    secret = make_secret("hers", iterations=4096)
    running = RunningMesh(
        f"mesh: shop\nwatch: {free_port()}\nrouters: {{r1: {{}}}}\naddresses: {{rpc: anycast}}\n"
        f'users:\n  alice: {{password: "{secret}", manage: ["#"]}}\n',
        tmp_path_factory.mktemp("proxied"),
    )
    yield running
    running.down()


@pytest.fixture(scope="module")
def console(mesh: RunningMesh, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedConsole]:
    started = ProxiedConsole(mesh, tmp_path_factory.mktemp("nginx") / "run")
    yield started
    started.stop()


@pytest.fixture(scope="module")
def session(console: ProxiedConsole) -> dict[str, str]:
    """The headers of a browser that has logged in through the proxy."""
    status, headers, _ = console.ask("POST", "/login", {"user": "alice", "password": "hers"}, origin=ORIGIN)
    assert status == 200
    cookie = headers["set-cookie"]
    assert {"secure", "httponly", "samesite=strict"} <= {part.strip().lower() for part in cookie.split(";")}
    return {"cookie": cookie.partition(";")[0], "sec_fetch_site": "same-origin"}


def test_a_page_needs_a_login_and_is_there_with_one(console: ProxiedConsole, session: dict[str, str]) -> None:
    status, _, page = console.ask("GET", "/")
    assert (status, "/console/page/login.js" in page) == (401, True)
    status, headers, page = console.ask("GET", "/", **session)
    assert (status, "/console/page/console.js" in page) == (200, True)
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert console.ask("GET", "/console/page/console.js", **session)[0] == 200
    assert json.loads(console.ask("GET", "/api/me", **session)[2])["user"] == "alice"


def test_a_stream_comes_as_it_is_written(console: ProxiedConsole, session: dict[str, str]) -> None:
    with console.asking("GET", "/api/stream?entity=nodes", **session) as answer:
        assert answer.status == 200
        assert answer.readline() == b"event: all\n"
        assert b'"r1"' in answer.readline()
        # What comes next is written a second later, while the answer has no end.
        assert answer.readline() == b"\n"
        assert answer.readline().startswith((b"event: changes", b":"))


def test_a_change_needs_the_origin_of_the_proxy(console: ProxiedConsole, session: dict[str, str]) -> None:
    def change(origin: str, **more: str) -> int:
        headers = {**session, "origin": origin, "idempotency_key": "key-1", **more}
        return console.ask("POST", "/api/nodes/r1/log-level", LEVEL, **headers)[0]

    for origin in ("https://evil.example", "null", f"http://{NAME}", f"{ORIGIN}:8443"):
        assert change(origin) == 403, origin
    assert change(ORIGIN, x_forwarded_for="192.0.2.7") == 200
    [entry] = json.loads(console.ask("GET", "/api/audit", **session)[2])["items"]
    assert entry["who"] == "alice"
    # nginx names the address that it saw, and not the one that its client names.
    assert re.fullmatch(r"127\.0\.0\.1 by the proxy at 127\.0\.0\.1:\d+", entry["from"])


def test_the_observer_itself_takes_no_origin_of_the_proxy(console: ProxiedConsole, session: dict[str, str]) -> None:
    with closing(http.client.HTTPConnection(console.observer, timeout=SOON_S)) as direct:
        direct.request("POST", "/logout", headers={"cookie": session["cookie"], "origin": ORIGIN})
        assert direct.getresponse().status == 403
