"""The meshes that scenarios name."""

from __future__ import annotations

from typing import Any

ADDRESSES: dict[str, Any] = {
    "orders": "anycast",
    "tasks": {"type": "anycast", "retransmit": True},
    "prices": "multicast",
    "closed": "unavailable",
}
KEPT: dict[str, Any] = {
    **ADDRESSES,
    "inbox": {"type": "queue", "broker": "b1"},
    "news": {"type": "topic", "broker": "b1"},
}
RING: dict[str, Any] = {
    "r1": {"connect": ["r2", {"to": "r4", "cost": 2}]},
    "r2": {"connect": ["r3"]},
    "r3": {"connect": ["r4"]},
    "r4": {},
}

MESHES: dict[str, dict[str, Any]] = {
    "line_3": {"routers": {"r1": {"connect": ["r2"]}, "r2": {"connect": ["r3"]}, "r3": {}}, "addresses": ADDRESSES},
    "ring_4": {"routers": RING, "addresses": ADDRESSES},
    "ring_with_broker": {
        "routers": RING,
        "brokers": {"b1": {"data": "b1", "routers": ["r3", "r4"]}},
        "addresses": KEPT,
    },
    "two_sites": {
        "routers": {"r1": {"connect": ["r2"]}, "r2": {}},
        "brokers": {"b1": {"data": "b1", "routers": ["r2"]}},
        "addresses": {**KEPT, "work": {"type": "anycast", "fallback": "inbox"}},
    },
}
