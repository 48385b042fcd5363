"""The `amqpmesh` command against a mesh of real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mesh.terminal.exit_codes import ExitCode
from mesh_tests.running_mesh import AMQPMESH, RunningMesh
from mesh_tests.waiting import wait_until

COMMAND_S = 60.0
TOPOLOGY = """
mesh: cli
routers:
  r1: {}
  r2: {connect: [r1]}
  r3: {listeners: [{host: 127.0.0.1}, {host: 127.0.0.1, tls: true}], connect: [r2]}
brokers:
  b1: {data: ./data, routers: [r3]}
addresses:
  rpc.#: anycast
  prices.#: multicast
  orders.#: queue
  news.#: topic
  closed: unavailable
"""


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    running = RunningMesh(TOPOLOGY, tmp_path_factory.mktemp("cli"))
    yield running
    running.down()


def run(mesh: RunningMesh, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [AMQPMESH, *arguments],
        cwd=mesh.topology_file.parent,
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
        **options,
    )


def receive_later(mesh: RunningMesh, url: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [AMQPMESH, "receive", url, "--json", *arguments],
        cwd=mesh.topology_file.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def bodies(receiver: subprocess.Popen[str]) -> list[str]:
    lines, talk = receiver.communicate(timeout=COMMAND_S)
    assert receiver.returncode == ExitCode.OK, talk
    return [json.loads(line)["body"] for line in lines.splitlines()]


def status(mesh: RunningMesh) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(mesh, "status", "--json").stdout)
    return found


def test_a_mesh_that_is_up_shows_every_node(mesh: RunningMesh) -> None:
    told = status(mesh)
    assert told["schema"] == "amqpmesh.status/1"
    assert told["phase"] == "ready"
    assert told["missing"] == []
    assert [(node["name"], node["kind"], node["state"]) for node in told["nodes"]] == [
        ("b1", "broker", "up"),
        ("r1", "router", "up"),
        ("r2", "router", "up"),
        ("r3", "router", "up"),
    ]
    lines = run(mesh, "ps", "-a", "-c").stdout.splitlines()
    assert lines[0].split()[:4] == ["NODE", "KIND", "STATE", "PID"]


def test_queues_are_shown_with_what_they_hold(mesh: RunningMesh) -> None:
    assert run(mesh, "send", "orders.shown", "-m", "x", "--durable").returncode == ExitCode.OK
    table = run(mesh, "status", "-q").stdout.split("\n\n")[1].splitlines()
    assert table[0].split() == [
        "NODE",
        "ADDRESS",
        "SUBSCRIBER",
        "DURABLE",
        "AVAILABLE",
        "ACQUIRED",
        "BYTES",
        "CONSUMERS",
        "WAITING",
    ]
    row = next(line.split() for line in table if " orders.shown " in line)
    assert row[:6] == ["b1", "orders.shown", "-", "yes", "1", "0"]


def test_the_cost_of_a_connection_is_changed_at_both_ends_until_it_is_changed_back(mesh: RunningMesh) -> None:
    changed = run(mesh, "cost", "r2", "r1", "7", "--json")
    assert json.loads(changed.stdout) | {"schema": ""} == {
        "schema": "",
        "routers": ["r2", "r1"],
        "cost": 7,
        "before": 1,
    }
    assert "to keep the new cost after a restart, write it into the topology file" in changed.stderr
    said = "r2 - r1 costs 7, and 1 in amqpmesh.yml"
    assert said in run(mesh, "status").stderr
    assert status(mesh)["changed_costs"] == [said]
    assert run(mesh, "cost", "r1", "r2", "1").stderr.startswith("r1 - r2: cost 1, was 7")
    assert "costs" not in run(mesh, "status").stderr


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["r1", "r9", "5"], "unknown router 'r9' in mesh", ExitCode.USAGE),
        (["r1", "r3", "5"], "r1 is not connected to r3, but to r2", ExitCode.USAGE),
        (["r1", "r2", "0"], "0 is not in the range x>=1", ExitCode.USAGE),
        (["r1", "r2", "1000001"], "cost: expected a whole number from 1 to 1000000, got 1000001", ExitCode.FAILED),
    ],
)
def test_a_cost_that_cannot_be_changed_is_told_why(
    mesh: RunningMesh, arguments: list[str], said: str, code: ExitCode
) -> None:
    refused = run(mesh, "cost", *arguments)
    assert (refused.returncode, said in refused.stderr) == (code, True), refused.stderr


def test_up_again_changes_nothing(mesh: RunningMesh) -> None:
    before = {node["name"]: node["pid"] for node in status(mesh)["nodes"]}
    again = run(mesh, "up", "--json")
    assert again.returncode == ExitCode.OK, again.stderr
    assert json.loads(again.stdout)["already_running"]
    assert {node["name"]: node["pid"] for node in status(mesh)["nodes"]} == before


def test_status_shows_the_revision_that_runs_whatever_the_file_has_now(mesh: RunningMesh) -> None:
    revision, text = status(mesh)["revision"], mesh.topology_file.read_text()
    assert (revision["number"], len(revision["hash"])) == (1, 64)
    assert f"runs revision 1 ({revision['hash'][:12]})" in run(mesh, "status").stderr
    try:
        mesh.topology_file.write_text(text.replace("mesh:", "default_broker: b1\nmesh:"))
        assert status(mesh)["revision"] == revision
    finally:
        mesh.topology_file.write_text(text)


def test_up_with_a_changed_topology_says_what_differs(mesh: RunningMesh) -> None:
    text = mesh.topology_file.read_text()
    try:
        mesh.topology_file.write_text(text.replace("  closed:", "  added: anycast\n  closed:"))
        again = run(mesh, "up", "--detach")
        told = [run(mesh, *command) for command in (["status"], ["check"], ["send", "orders.changed", "-m", "x"])]
        is_changed = status(mesh)["topology_changed"]
    finally:
        mesh.topology_file.write_text(text)
    assert [result.returncode for result in told] == [ExitCode.OK] * len(told)
    assert all("was started from another version of" in result.stderr for result in told)
    assert is_changed
    assert not status(mesh)["topology_changed"]
    assert again.returncode == ExitCode.FAILED
    assert "add address added" in again.stderr
    assert "fix: `amqpmesh apply`, if it only adds addresses; else `amqpmesh down`, then `amqpmesh up`" in again.stderr


def test_anycast_goes_from_end_to_end(mesh: RunningMesh) -> None:
    receiver = receive_later(mesh, f"{mesh.url('r3')}/rpc.a", "-c", "3", "-W", "30s")
    sent = run(mesh, "send", "rpc.a", "-c", "3", "-m", "hello", "--json", "--timeout", "30s")
    assert json.loads(sent.stdout)["accepted"] == 3
    assert bodies(receiver) == ["hello"] * 3


def test_multicast_reaches_every_receiver(mesh: RunningMesh) -> None:
    receivers = [receive_later(mesh, f"{mesh.url(at)}/prices.a", "-c", "1", "-W", "30s") for at in ("r1", "r3", "r3")]

    def are_attached() -> bool:
        takers = [
            address["takers"]
            for node in ("r1", "r3")
            for address in mesh.snapshot(node)["node"]["addresses"]
            if address["address"] == "prices.a"
        ]
        return len(takers) == 2 and min(takers) >= 1 and sum(takers) >= 3

    wait_until(are_attached, COMMAND_S, "three receivers")
    assert run(mesh, "send", "prices.a", "-m", "7", "-c", "1").returncode == ExitCode.OK
    assert [bodies(receiver) for receiver in receivers] == [["7"], ["7"], ["7"]]


def test_a_queue_keeps_messages_until_they_are_received(mesh: RunningMesh) -> None:
    lines = "\n".join(f"line {number}" for number in range(50))
    sent = run(mesh, "send", "orders.a", "-l", "--durable", input=lines)
    assert sent.stdout == "sent 50  accepted 50\n", sent.stderr
    browsed = run(mesh, "receive", f"{mesh.url('r3')}/orders.a", "--browse", "-e")
    assert browsed.stdout.splitlines() == lines.splitlines()
    received = run(mesh, "receive", "orders.a", "-c", "20", "-W", "30s")
    assert received.stdout.splitlines() == lines.splitlines()[:20]
    assert received.stderr == "received 20\n"
    rest = run(mesh, "receive", "orders.a", "-e", "-F", r"%n %b\n")
    assert rest.stdout.splitlines()[0] == "1 line 20"
    assert len(rest.stdout.splitlines()) == 30


def test_properties_of_a_message_arrive(mesh: RunningMesh) -> None:
    options = ["--subject", "s", "--key", "g", "--ttl", "1h", "--priority", "7", "--content-type", "text/plain"]
    run(mesh, "send", "orders.b", "-m", "x", "-p", "a=1", "-p", "b:=2", "--durable", *options)
    got = json.loads(run(mesh, "receive", "orders.b", "-c", "1", "-W", "30s", "--json").stdout)
    expected = {"subject": "s", "key": "g", "priority": 7, "durable": True, "content_type": "text/plain"}
    assert {key: got[key] for key in expected} == expected
    assert got["properties"] == {"a": "1", "b": 2}


def test_a_body_can_come_from_a_file_and_go_to_a_folder(mesh: RunningMesh, tmp_path: Path) -> None:
    content = os.urandom(300_000)
    (tmp_path / "in").write_bytes(content)
    assert run(mesh, "send", "orders.c", "-f", str(tmp_path / "in")).returncode == ExitCode.OK
    run(mesh, "receive", "orders.c", "-c", "1", "-W", "30s", "-o", str(tmp_path / "out"))
    assert (tmp_path / "out" / "000001").read_bytes() == content


def test_bodies_are_filed_behind_those_that_are_there(mesh: RunningMesh, tmp_path: Path) -> None:
    for body in (("-m", "first"), ("-m", "second"), ("-s", "300000")):
        assert run(mesh, "send", "orders.filed", *body).returncode == ExitCode.OK
        got = run(mesh, "receive", "orders.filed", "-c", "1", "-W", "30s", "-o", str(tmp_path), "--json")
        told = json.loads(got.stdout)
        assert Path(told["body_file"]).exists()
        assert "body" not in told
    (tmp_path / "notes.txt").write_text("no body")
    found = [path.read_text() for path in sorted(tmp_path.glob("0*"))]
    assert found == ["first", "second", "x" * 300_000]


MEASURED = "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); \
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(code)"


def test_a_large_body_is_sent_and_filed_without_being_held(mesh: RunningMesh, tmp_path: Path) -> None:
    """300 MiB through commands of less than 100 MiB, at both ends."""
    url = f"{mesh.url('r3')}/rpc.large"
    commands = [
        ["receive", url, "-c", "1", "-o", str(tmp_path)],
        ["send", "rpc.large", "-s", "300m", "--timeout", "30s"],
    ]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", MEASURED, AMQPMESH, *command],
            cwd=mesh.topology_file.parent,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    talks = [one.communicate(timeout=COMMAND_S)[1] for one in running]
    assert [one.returncode for one in running] == [ExitCode.OK, ExitCode.OK], talks
    assert (tmp_path / "000001").stat().st_size == 300 << 20
    assert all(int(talk.split()[-1]) < 100 << 10 for talk in talks), talks


def test_what_is_not_accepted_comes_back(mesh: RunningMesh) -> None:
    run(mesh, "send", "orders.d", "-m", "again")
    assert run(mesh, "receive", "orders.d", "-c", "1", "-W", "30s", "--outcome", "release").stdout == "again\n"
    assert run(mesh, "receive", "orders.d", "-c", "1", "-W", "30s").stdout == "again\n"


def subscribers(mesh: RunningMesh) -> list[tuple[str, str | None, int]]:
    """Address, subscriber and messages of each subscription."""
    queues = json.loads(run(mesh, "broker", "list", "--json").stdout)["queues"]
    return [
        (one["address"], one["subscriber"], one["available_count"]) for one in queues if one["kind"] == "subscription"
    ]


def test_a_durable_subscription_collects_until_it_is_ended(mesh: RunningMesh) -> None:
    mine = ("receive", "news.#", "--durable", "laptop")
    first = run(mesh, *mine, "-e")
    assert (first.returncode, first.stdout) == (ExitCode.OK, "")
    assert subscribers(mesh) == [("news.#", "cli|amqpmesh|laptop", 0)]
    run(mesh, "send", "news.tea", "-m", "one", "-c", "3")
    assert subscribers(mesh) == [("news.#", "cli|amqpmesh|laptop", 3)]
    again = run(mesh, "receive", f"{mesh.url('r3')}/news.%23", "--durable", "laptop", "-c", "2", "-W", "30s")
    assert again.stdout == "news.tea one\nnews.tea one\n"
    assert subscribers(mesh) == [("news.#", "cli|amqpmesh|laptop", 1)]
    other = run(mesh, "receive", "news.tea", "--durable", "laptop", "--unsubscribe")
    assert other.returncode == ExitCode.FAILED
    assert other.stderr == (
        "error: cannot end the subscription laptop to news.tea: it is to news.#\n"
        "fix: to end that subscription, name news.#.\n"
    )
    ended = run(mesh, *mine, "--unsubscribe")
    assert (ended.returncode, ended.stderr) == (ExitCode.OK, "ended the subscription laptop to news.#\n")
    assert subscribers(mesh) == []
    gone = run(mesh, *mine, "--unsubscribe")
    assert gone.returncode == ExitCode.FAILED
    assert gone.stderr == (
        "error: cannot end the subscription laptop: no durable subscription is known as 'amqpmesh|laptop'\n"
        "fix: `amqpmesh broker list` shows all subscriptions, and `amqpmesh broker delete` ends any of them.\n"
    )


def test_subscriptions_of_one_name_are_told_apart_by_the_client_id(mesh: RunningMesh) -> None:
    for client_id in ("one", "two"):
        run(mesh, "receive", "news.#", "--durable", "laptop", "--client-id", client_id, "-e")
    assert [subscriber for _, subscriber, _ in subscribers(mesh)] == ["cli|one|laptop", "cli|two|laptop"]
    for client_id in ("one", "two"):
        run(mesh, "receive", "news.#", "--durable", "laptop", "--client-id", client_id, "--unsubscribe")
    assert subscribers(mesh) == []


def test_ctrl_c_leaves_a_durable_subscription_with_what_it_did_not_settle(mesh: RunningMesh) -> None:
    receiver = receive_later(mesh, "news.#", "--durable", "laptop")
    wait_until(lambda: subscribers(mesh) == [("news.#", "cli|amqpmesh|laptop", 0)], COMMAND_S, "attach")
    receiver.send_signal(signal.SIGINT)
    receiver.communicate(timeout=COMMAND_S)
    run(mesh, "send", "news.tea", "-m", "missed")
    assert subscribers(mesh) == [("news.#", "cli|amqpmesh|laptop", 1)]
    run(mesh, "receive", "news.#", "--durable", "laptop", "--unsubscribe")
    assert subscribers(mesh) == []


@pytest.mark.parametrize("address", ["orders.kept", "rpc.kept", "prices.kept"])
def test_what_is_no_topic_has_no_durable_subscription(mesh: RunningMesh, address: str) -> None:
    refused = run(mesh, "receive", address, "--durable", "laptop")
    assert refused.returncode == ExitCode.FAILED
    assert refused.stderr == (
        f"error: {address} cannot have durable subscriptions\nfix: only topics have durable subscriptions; "
        "leave out --durable.\n"
    )


def test_an_outcome_that_was_not_expected_exits_1(mesh: RunningMesh) -> None:
    receiver = receive_later(mesh, f"{mesh.url('r3')}/rpc.b", "-c", "2", "-W", "30s", "--outcome", "reject")
    sent = run(mesh, "send", "rpc.b", "-m", "x", "--timeout", "30s")
    assert sent.returncode == ExitCode.FAILED
    assert sent.stdout == "sent 1  rejected 1  (rejected by amqpmesh receive --outcome reject: 1)\n"
    expected = run(mesh, "send", "rpc.b", "-m", "x", "--expect", "rejected", "--timeout", "30s")
    assert expected.returncode == ExitCode.OK
    assert len(bodies(receiver)) == 2


def test_a_rate_is_kept(mesh: RunningMesh) -> None:
    started = time.monotonic()
    sent = json.loads(run(mesh, "send", "orders.e", "-s", "1k", "-r", "100/s", "-d", "1s", "--json").stdout)
    assert time.monotonic() - started >= 1.0 - 0.01
    assert 90 <= sent["sent"] <= 100


def test_without_a_receiver_there_is_no_credit_and_send_says_so(mesh: RunningMesh) -> None:
    sent = run(mesh, "send", "rpc.nobody", "-m", "x", "--timeout", "500ms")
    assert sent.returncode == ExitCode.TIMEOUT
    assert "no credit for rpc.nobody within 0.5 s: the address has no receiver, or its queue is full" in sent.stderr


@pytest.mark.parametrize("address", ["closed", "undeclared"])
def test_an_address_that_is_refused_is_told_with_its_condition(mesh: RunningMesh, address: str) -> None:
    for command in (["send", address, "-m", "x"], ["receive", address]):
        result = run(mesh, *command, "--json")
        assert result.returncode == ExitCode.FAILED
        assert json.loads(result.stdout)["error"]["code"] == "amqp:not-found"


def test_an_address_that_is_unavailable_is_not_said_to_be_undeclared(mesh: RunningMesh) -> None:
    sent = run(mesh, "send", "closed", "-m", "x")
    assert sent.returncode == ExitCode.FAILED
    assert sent.stderr == (
        "error: cannot send to closed: the topology says that address 'closed' is unavailable\n"
        "fix: the topology declares the address `unavailable`: give the address another type.\n"
    )


@pytest.mark.parametrize("address", ["rpc.#", "orders.*"])
def test_a_receiver_with_wildcards_that_nobody_copies_is_told_which_address_works(
    mesh: RunningMesh, address: str
) -> None:
    received = run(mesh, "receive", address, "-W", "30s")
    assert received.returncode == ExitCode.FAILED
    pattern, example = f"{address[:-1]}#", f"{address[:-1]}example"
    assert received.stderr == (
        f"error: cannot receive from {address}: {address!r} has wildcards, and only topics and multicast addresses "
        f"have receivers with wildcards: expected one address that {pattern!r} matches, such as {example!r}\n"
    )
    sent = run(mesh, "send", address, "-m", "x")
    assert sent.returncode == ExitCode.FAILED
    assert f"{address!r} has wildcards: expected one address that {pattern!r} matches" in sent.stderr


def test_nobody_there_exits_69(mesh: RunningMesh) -> None:
    sent = run(mesh, "send", "//127.0.0.1:1/orders.a", "-m", "x")
    assert sent.returncode == ExitCode.UNREACHABLE
    assert sent.stderr == "error: 127.0.0.1:1: cannot connect: connection refused\n"


def test_too_few_messages_exit_75(mesh: RunningMesh) -> None:
    received = run(mesh, "receive", "orders.empty", "-c", "1", "-W", "300ms")
    assert received.returncode == ExitCode.TIMEOUT
    assert received.stdout == ""


def test_tls_listeners_of_the_mesh_are_trusted_in_its_folder(mesh: RunningMesh, tmp_path: Path) -> None:
    url = f"amqps://127.0.0.1:{mesh.port('r3', 1)}/orders.tls"
    assert run(mesh, "send", url, "-m", "x").stdout == "sent 1  accepted 1\n"
    elsewhere = subprocess.run(
        [AMQPMESH, "receive", url, "-c", "1"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert elsewhere.returncode == ExitCode.UNREACHABLE
    assert "certificate" in elsewhere.stderr
    ca = tmp_path / "ca.pem"
    ca.write_text(run(mesh, "certs", "export", "ca").stdout)
    trusted = run(mesh, "receive", url, "-c", "1", "-W", "30s", "--ca", str(ca))
    assert trusted.stdout == "x\n"


def test_certificates_are_shown_issued_and_exported(mesh: RunningMesh) -> None:
    shown = json.loads(run(mesh, "certs", "show", "--json").stdout)["certificates"]
    assert {(one["role"], one["name"]) for one in shown} >= {
        ("broker", "b1"),
        ("operator", "operator"),
        ("router", "r1"),
        ("router", "r2"),
        ("router", "r3"),
    }
    assert run(mesh, "certs", "issue", "alice").returncode == ExitCode.OK
    assert "already" in run(mesh, "certs", "issue", "alice").stderr
    assert run(mesh, "certs", "export", "alice").stdout.count("-----BEGIN CERTIFICATE-----") == 2
    unknown = run(mesh, "certs", "export", "bob")
    assert unknown.returncode == ExitCode.FAILED
    assert "no certificate of 'bob': expected one of " in unknown.stderr
    renewed = run(mesh, "certs", "renew", "alice", "--json")
    assert [one["name"] for one in json.loads(renewed.stdout)["certificates"]] == ["alice"]


def test_a_node_that_is_started_again_is_one_of_the_mesh_that_runs(mesh: RunningMesh) -> None:
    text, old = mesh.topology_file.read_text(), mesh.pid("r1")
    try:
        mesh.topology_file.write_text("mesh: [")
        mesh.kill("r1")
        wait_until(lambda: mesh.pid("r1") != old and mesh.snapshot("r1"), COMMAND_S, "r1 to be back")
    finally:
        mesh.topology_file.write_text(text)
    wait_until(lambda: status(mesh)["missing"] == [], COMMAND_S, "the mesh to be whole")


def test_a_node_that_dies_is_started_again(mesh: RunningMesh) -> None:
    old = mesh.pid("r2")
    mesh.kill("r2")
    wait_until(lambda: mesh.pid("r2") != old, COMMAND_S, "r2 to be back")

    def is_whole() -> bool:
        told = status(mesh)
        return told["missing"] == [] and all(node["state"] == "up" for node in told["nodes"])

    wait_until(is_whole, COMMAND_S, "the mesh to be whole")
    r2 = next(node for node in status(mesh)["nodes"] if node["name"] == "r2")
    deaths = [line for line in mesh.log("_supervisor") if line["event"] == "node_died" and line["died"] == "r2"]
    assert [line["reason"].partition(";")[0] for line in deaths] == ["r2 was ended by SIGKILL"]
    assert r2["restarts"] == 1
    assert run(mesh, "send", "orders.z", "-m", "x", "--timeout", "30s").returncode == ExitCode.OK


def test_ctrl_c_while_receiving_exits_130(mesh: RunningMesh) -> None:
    receiver = receive_later(mesh, "rpc.c")
    wait_until(
        lambda: any(one["address"] == "rpc.c" for one in mesh.snapshot("r1")["node"]["addresses"]), COMMAND_S, "attach"
    )
    receiver.send_signal(signal.SIGINT)
    _, talk = receiver.communicate(timeout=COMMAND_S)
    assert receiver.returncode == ExitCode.INTERRUPTED
    assert talk.strip() == "interrupted"
