"""A durable subscriber comes back over a second connection while its first one hangs, and the broker is away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mesh.simulation.sim_mesh import SimMesh
from wire.terminus import Durability, Expiry

DURABLE: dict[str, Any] = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
OTHERS = 100


def test_the_older_link_may_take_the_subscription_back(tmp_path: Path) -> None:
    """Known limit: nothing tells the broker which of the two links the client attached last."""
    mesh = SimMesh(
        {
            "mesh": "mesh",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {}},
            "brokers": {"b1": {"data": "b1", "routers": ["r2"]}},
            "addresses": {"news.#": {"type": "topic", "broker": "b1"}},
        },
        tmp_path,
    )
    mesh.converge()
    mesh.run_until(lambda: mesh.routers["r2"].snapshot().brokers[0].is_up)
    others = [mesh.client("r1", f"c{number}").receiver("news.x", name="s", **DURABLE) for number in range(OTHERS)]
    older = mesh.client("r1", "c").receiver("news.x", name="s", **DURABLE)
    mesh.run_until(lambda: all(each.link.is_open for each in [*others, older]), 30)
    mesh.kill_broker("b1")
    mesh.run(1.0)
    newer = mesh.client("r2", "c").receiver("news.x", name="s", **DURABLE)
    mesh.run(1.0)
    mesh.start_broker("b1")
    mesh.run(5.0)
    assert older.error is None
    assert newer.error is not None
    assert newer.error.condition == "amqp:link:stolen"
    mesh.close()
