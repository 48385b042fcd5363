"""Clients that we did not write, behind one interface: send, receive, request, respond.

The programs of ours that drive a library (``*_client.*``, ``JmsClient``) take ``key=value`` arguments:

    mode          send | receive | request | respond | unsubscribe (JMS)
    urls          amqp://[user:password@]host:port, several separated by commas: try the next when one is lost
    address       where to
    count         how many messages; the program ends with exit code 0 when all were accepted, received or answered
    pause_ms      between two sends
    kind          queue | topic: what JMS calls the destination
    subscription  name of a durable subscription
    share         durable | volatile: the subscription is shared, and of this kind (JMS)
    consumers     how many on one connection (JMS)
    no_local      true: the consumer wants nothing of its own connection, which sends it something (JMS)
    settles       the modes that a link asks for (go-amqp)
    drain         true: the receiver drains its credit at the end (go-amqp)
    container_id  of the AMQP connection (JMS: client id)

and write one line for each thing that happens: ``attached``, ``sequence=N`` (accepted or received), ``reply=TEXT``,
``again: WHY`` (a message came back and is sent again), ``failed: WHY``, ``done``. The body of a message is a map with
the key ``sequence``, counted from 1, as the proton examples have it.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mesh_tests.installed import PEERS
from mesh_tests.programs import Program

HERE = Path(__file__).parent
DONE_S = 40.0
ATTACHED_S = 20.0
# What the engine of the proton examples writes under PN_TRACE_FRM when the peer has answered its attach.
TRACED_ATTACH = r"<- .*@attach"
# A traced frame has an @.
SEQUENCE = r"^[^@\n]*\bsequence\W+(\d+)"


@dataclass(frozen=True)
class Exchange:
    """One run of a client program."""

    program: Program
    attached: str

    def wait_attached(self) -> None:
        self.program.wait_for(self.attached, ATTACHED_S)

    def wait_sequences(self, count: int, timeout_s: float = DONE_S) -> None:
        """At least ``count`` messages accepted or received, with the program still running or not."""
        self.program.wait_for(SEQUENCE, timeout_s, count)

    def sequences(self, timeout_s: float = DONE_S) -> list[int]:
        """What was accepted or received, once the program has ended well."""
        output = self.program.wait_success(timeout_s)
        return [int(number) for number in re.findall(SEQUENCE, output, re.MULTILINE)]

    def replies(self, timeout_s: float = DONE_S) -> list[str]:
        return re.findall(r"^(?:reply=|.* => )(.*)$", self.program.wait_success(timeout_s), re.MULTILINE)

    def wait_success(self, timeout_s: float = DONE_S) -> None:
        self.program.wait_success(timeout_s)

    def wait_failure(self, timeout_s: float = DONE_S) -> str:
        """What the program said before it gave up."""
        return self.program.wait_failure(timeout_s)


class Client:
    """What every kind of client has in common. ``urls`` is one URL or, for those that can, several to fail over to."""

    name: str
    needs: str
    is_optional = False
    """It may be left out where everything has to be there: the machine may have no tools to build it."""
    can_request = True
    can_fail_over = False
    sends_again = False  # what came back released or modified
    can_subscribe = False
    can_log_in = False
    takes_any_order = True
    attached = "^attached"
    env: dict[str, str] = {}  # noqa: RUF012 - never changed

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._programs: list[Program] = []

    @classmethod
    def is_installed(cls) -> bool:
        raise NotImplementedError

    def command(self, mode: str, urls: Sequence[str], address: str, count: int, **options: str) -> Sequence[str]:
        raise NotImplementedError

    def start(self, mode: str, urls: str | Sequence[str], address: str, count: int, **options: str) -> Exchange:
        urls = [urls] if isinstance(urls, str) else urls
        name = f"{self.name}-{len(self._programs)}-{mode}"
        program = Program(name, self.command(mode, urls, address, count, **options), self.directory, self.env)
        self._programs.append(program)
        return Exchange(program, self.attached)

    def send(self, urls: str | Sequence[str], address: str, count: int, **options: str) -> Exchange:
        return self.start("send", urls, address, count, **options)

    def receive(self, urls: str | Sequence[str], address: str, count: int, **options: str) -> Exchange:
        """Returns when the receiver is attached."""
        return self._attached(self.start("receive", urls, address, count, **options))

    def request(self, urls: str | Sequence[str], address: str, count: int, **options: str) -> Exchange:
        return self.start("request", urls, address, count, **options)

    def respond(self, urls: str | Sequence[str], address: str, count: int, **options: str) -> Exchange:
        """Returns when the responder is attached. It answers in capital letters."""
        return self._attached(self.start("respond", urls, address, count, **options))

    def stop(self) -> None:
        for program in self._programs:
            program.stop()

    @staticmethod
    def _attached(exchange: Exchange) -> Exchange:
        exchange.wait_attached()
        return exchange


def _arguments(mode: str, urls: Sequence[str], address: str, count: int, options: dict[str, str]) -> list[str]:
    named = {"mode": mode, "urls": ",".join(urls), "address": address, "count": count, **options}
    return [f"{key}={value}" for key, value in named.items()]


class Rhea(Client):
    name = "rhea"
    needs = "rhea (npm)"
    can_fail_over = sends_again = can_subscribe = can_log_in = True
    env = {"NODE_PATH": str(PEERS / "rhea" / "node_modules")}  # noqa: RUF012

    @classmethod
    def is_installed(cls) -> bool:
        return (PEERS / "rhea" / "node_modules" / "rhea").exists()

    def command(self, mode: str, urls: Sequence[str], address: str, count: int, **options: str) -> Sequence[str]:
        return ["node", str(HERE / "rhea_client.js"), *_arguments(mode, urls, address, count, options)]


class Jms(Client):
    name = "jms"
    needs = "Qpid JMS (Maven Central) and Java 17"
    can_fail_over = sends_again = can_subscribe = can_log_in = True

    @classmethod
    def is_installed(cls) -> bool:
        return (PEERS / "jms" / "classes" / "JmsClient.class").exists()

    def command(self, mode: str, urls: Sequence[str], address: str, count: int, **options: str) -> Sequence[str]:
        classes = f"{PEERS}/jms/classes:{PEERS}/jms/lib/*"
        small = ("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
        return ["java", *small, "-cp", classes, "JmsClient", *_arguments(mode, urls, address, count, options)]


class Container(Client):
    name = "container"
    needs = "python-qpid-proton"
    can_fail_over = sends_again = can_subscribe = can_log_in = True
    program = "container_client.py"

    @classmethod
    def is_installed(cls) -> bool:
        return True

    def command(self, mode: str, urls: Sequence[str], address: str, count: int, **options: str) -> Sequence[str]:
        return [sys.executable, str(HERE / self.program), *_arguments(mode, urls, address, count, options)]


class Blocking(Container):
    name = "blocking"
    can_fail_over = False
    program = "blocking_client.py"


class ProtonC(Client):
    """The send and receive examples in C: no user, no request and reply."""

    name = "proton_c"
    needs = "proton's C examples (Debian: libqpid-proton11-dev-examples)"
    can_request = False
    attached = TRACED_ATTACH
    env = {"PN_TRACE_FRM": "1"}  # noqa: RUF012

    @classmethod
    def is_installed(cls) -> bool:
        return (PEERS / "proton_c" / "receive").exists()

    def command(self, mode: str, urls: Sequence[str], address: str, count: int, **options: str) -> Sequence[str]:
        url = urlsplit(urls[0])
        return [f"{PEERS}/proton_c/{mode}", str(url.hostname), str(url.port), address, str(count)]


class ProtonCpp(Client):
    """The simple_send, simple_recv, client and server examples in C++. The server never ends by itself."""

    name = "proton_cpp"
    takes_any_order = False  # simple_recv leaves out a message that comes after one with a higher number
    needs = "proton's C++ examples (Debian: libqpid-proton11-dev-examples)"
    attached = TRACED_ATTACH
    env = {"PN_TRACE_FRM": "1"}  # noqa: RUF012

    @classmethod
    def is_installed(cls) -> bool:
        return (PEERS / "proton_cpp" / "client").exists()

    def command(self, mode: str, urls: Sequence[str], address: str, count: int, **options: str) -> Sequence[str]:
        url = f"{urls[0]}/{address}"
        programs = {
            "send": ["simple_send", "-a", url, "-m", str(count)],
            "receive": ["simple_recv", "-a", url, "-m", str(count)],
            "request": ["client", "-a", url],
            "respond": ["server", urls[0], address],
        }
        program, *arguments = programs[mode]
        return [f"{PEERS}/proton_cpp/{program}", *arguments]


class GoAmqp(Client):
    """``settles`` and ``drain``, as its program describes them."""

    name = "go_amqp"
    needs = "go-amqp (the Go module proxy) and Go 1.25"
    is_optional = True
    can_request = False

    @classmethod
    def is_installed(cls) -> bool:
        return (PEERS / "go_amqp" / "client").exists()

    def command(self, mode: str, urls: Sequence[str], address: str, count: int, **options: str) -> Sequence[str]:
        return [f"{PEERS}/go_amqp/client", *_arguments(mode, urls, address, count, options)]


class Azure(Client):
    """Sends and receives with snd-settle-mode unsettled and rcv-settle-mode second, and knows nothing else."""

    name = "azure"
    needs = "azure-servicebus (PyPI)"
    can_request = False

    @classmethod
    def is_installed(cls) -> bool:
        return (PEERS / "azure" / "done").exists()

    def command(self, mode: str, urls: Sequence[str], address: str, count: int, **options: str) -> Sequence[str]:
        arguments = _arguments(mode, urls, address, count, options)
        return [f"{PEERS}/azure/bin/python", str(HERE / "azure_client.py"), *arguments]


ALL = (Rhea, Jms, Container, Blocking, ProtonC, ProtonCpp, GoAmqp)


def that(ability: str) -> list[object]:
    """The kinds of client with this ability, for parametrize: ``("client", that("can_request"), indirect=True)``."""
    return [pytest.param(kind, id=kind.name) for kind in ALL if getattr(kind, ability)]
