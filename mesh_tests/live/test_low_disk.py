"""A mesh starts though the disk of its broker is low: its producers wait, and its queues can be drained."""

import json

from mesh_tests.waiting import wait_until

TOPOLOGY = """
mesh: low
routers: {r1: }
brokers: {b1: {data: data, disk_free_min_bytes: 1000000000000000000}}
addresses: {orders: queue}
"""


def test_a_mesh_whose_disk_is_low_is_ready_and_takes_no_message(start_mesh):
    mesh = start_mesh(TOPOLOGY)
    wait_until(lambda: any(line["event"] == "disk_low" for line in mesh.log("b1")), 30.0, "b1 to say so")
    assert mesh.snapshot("b1")["node"]["is_disk_low"]
    (sentence,) = json.loads(mesh.run("status", "--json"))["short_brokers"]
    assert sentence.startswith("producers wait for broker b1: its disk is nearly full")
    sent = mesh.run("send", "orders", "x", "--timeout", "1s", is_checked=False)
    assert "accepted" not in sent
    assert mesh.run("receive", "orders", "--timeout", "1s", is_checked=False) == ""
