"""Connections and links that an operator closes at a node's control socket, as an ordinary client sees their end."""

from __future__ import annotations

import stat
from typing import Any

import pytest
from proton import ConnectionException, Message
from proton.utils import BlockingConnection, LinkDetached

from mesh.deploy.control import RequestRefused, ask
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

TOPOLOGY = """
mesh: closing
watch: "on"
routers:
  r1: {connect: [r2]}
  r2:
brokers:
  b1: {routers: [r2]}
addresses:
  rpc: anycast
  orders: queue
"""
WITHIN_S = 20.0
SENTENCE = "closed by the operator alice: leaks credit"


@pytest.fixture(scope="module")
def mesh(start_module_mesh: Any) -> RunningMesh:
    return start_module_mesh(TOPOLOGY)


def observed(mesh: RunningMesh, plural: str, **wanted: str) -> dict[str, Any]:
    """The one entity of the observer with these values, once it is there."""

    def find() -> dict[str, Any] | None:
        _, answer = mesh.observed(f"/api/{plural}?limit=1000")
        found = [row for row in answer["items"] if all(row[name] == value for name, value in wanted.items())]
        return found[0] if len(found) == 1 else None

    return wait_until(find, WITHIN_S, f"one of {plural} with {wanted}")


def number(identity: str) -> int:
    return int(identity.partition("/")[2])


def close(mesh: RunningMesh, node: str, op: str, **numbers: int) -> Any:
    return ask(mesh.control_socket(node), op, operator="alice", reason="leaks credit", **numbers)


def test_only_the_owner_of_the_mesh_may_reach_a_control_socket(mesh: RunningMesh):
    for node in ("r1", "b1"):
        socket = mesh.control_socket(node)
        assert stat.S_IMODE(socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700


def test_a_proton_client_sees_the_condition_and_the_sentence_of_a_closed_connection(mesh: RunningMesh):
    connection = BlockingConnection(mesh.url("r1"), timeout=WITHIN_S)
    connection.create_receiver("rpc")
    name = connection.container.container_id
    found = observed(mesh, "connections", node="r1", container=name)
    assert close(mesh, "r1", "close_connection", connection=number(found["id"])) == {"connection": number(found["id"])}
    with pytest.raises(ConnectionException, match=SENTENCE) as ended:
        connection.create_receiver("rpc").receive(timeout=WITHIN_S)
    assert "amqp:connection:forced" in str(ended.value)
    wait_until(lambda: _events(mesh, "r1", "connection_forced"), WITHIN_S, "the event")
    (event,) = _events(mesh, "r1", "connection_forced")
    assert (event["operator"], event["reason"], event.get("user")) == (
        "alice",
        "leaks credit",
        None,
    )


@pytest.mark.parametrize("address", ["rpc", "orders"])
def test_a_proton_client_sees_the_condition_of_a_closed_link_and_goes_on_with_its_connection(
    mesh: RunningMesh, address: str
):
    connection = BlockingConnection(mesh.url("r1"), timeout=WITHIN_S)
    receiver = connection.create_receiver(address, credit=5)
    found = observed(mesh, "links", node="r1", container=connection.container.container_id)
    close(mesh, "r1", "close_link", connection=number(found["connection"]), link=number(found["id"]))
    with pytest.raises(LinkDetached) as ended:
        receiver.receive(timeout=WITHIN_S)
    assert ended.value.condition == "amqp:link:detach-forced"
    assert SENTENCE in str(ended.value)
    again = connection.create_receiver(address, credit=5)
    connection.create_sender(address).link.send(Message(body="still here"))
    assert again.receive(timeout=WITHIN_S).body == "still here"
    again.accept()
    connection.close()


def test_a_connection_between_nodes_that_was_closed_is_dialed_again(mesh: RunningMesh):
    for node, container in (("r1", "r2"), ("r2", "b1"), ("b1", "closing")):

        def close_newest(node: str = node, container: str = container) -> bool:
            rows = mesh.observed("/api/connections?limit=1000")[1]["items"]
            numbers = [number(row["id"]) for row in rows if (row["node"], row["container"]) == (node, container)]
            try:
                close(mesh, node, "close_connection", connection=max(numbers, default=1))
            except RequestRefused:
                return False  # The observer has not seen yet that the connection is another.
            return True

        wait_until(close_newest, WITHIN_S, f"the connection of {node} to {container}")
        mesh.wait_linked()
    mesh.run("send", "orders", "-m", "after all")
    assert "after all" in mesh.run("receive", "orders", "-c", "1")


def test_bad_requests_get_a_sentence(mesh: RunningMesh):
    with pytest.raises(RequestRefused, match="there is no open connection of router r1 with number 4000: expected "):
        close(mesh, "r1", "close_connection", connection=4000)
    with pytest.raises(
        RequestRefused, match="link: expected a number from 1, as at the end of the link's id, got None"
    ):
        close(mesh, "r1", "close_link", connection=1)
    with pytest.raises(RequestRefused, match="reason: expected one line of text, at most 500 characters, got "):
        ask(mesh.control_socket("b1"), "close_connection", connection=1, reason="x" * 501)


def _events(mesh: RunningMesh, node: str, name: str) -> list[dict[str, Any]]:
    return [event for event in mesh.log(node) if event["event"] == name]
