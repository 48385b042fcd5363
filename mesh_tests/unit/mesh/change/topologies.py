"""Random valid topologies, and edits of them: for tests of plans from one to another."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from addressing.errors import TopologyErrors
from addressing.topology.credentials import make_secret
from addressing.topology.document import parse_document
from addressing.topology.loader import parse_topology
from mesh.change.source import TopologySource

Data = dict[str, Any]
NAMES = ("orders", "q.#", "q.a", "q.a.#", "q.*", "q.b.c", "rpc", "rpc.#", "prices.#", "news.#", "dead", "#")
PATTERNS = ("#", "q.#", "orders", "rpc", "news.#", "${user}.x")
SECRET = make_secret("pencil", salt=b"0123456789abcdef")


def source_of(text: str) -> TopologySource:
    """The topology of a file's text, with places."""
    return TopologySource(parse_topology(text), parse_document(text))


def source_of_data(data: Data) -> TopologySource | None:
    """The topology of plain data; None if it is not valid."""
    try:
        return source_of(json.dumps(data, indent=1))
    except TopologyErrors:
        return None


def random_data(random: Random) -> Data:
    """Data of a valid topology."""
    while True:
        data = _data(random)
        if source_of_data(data) is not None:
            return data


def edited(random: Random, data: Data) -> Data:
    """Data of a valid topology that differs from ``data`` in some places, or by chance in none."""
    while True:
        other = json.loads(json.dumps(data))
        for _ in range(random.randint(1, 6)):
            random.choice(EDITS)(random, other)
        if source_of_data(other) is not None:
            return other


def _data(random: Random) -> Data:
    data: Data = {"mesh": "m", "routers": {}, "brokers": {}, "addresses": {}}
    for _ in range(random.randint(1, 4)):
        _add_router(random, data)
    for _ in range(random.randint(0, 2)):
        _add_broker(random, data)
    for _ in range(random.randint(0, 6)):
        _change_address(random, data)
    for _ in range(random.choice((0, 0, 1, 2))):
        _change_user(random, data)
    for _ in range(random.randint(0, 2)):
        _change_setting(random, data)
    return data


def _add_router(random: Random, data: Data) -> None:
    routers = data["routers"]
    name = random.choice([name for name in ("r1", "r2", "r3", "r4", "r5", "r6") if name not in routers] or ["r7"])
    others = [other for other, router in routers.items() if router.get("mode") != "edge"]
    router: Data = {"listeners": [_listener(random)], "connect": random.sample(others, min(len(others), 1))}
    if others and random.random() < 0.2:
        router["mode"] = "edge"
    if random.random() < 0.3:
        router["port"] = random.randint(26_660, 26_680)
    if random.random() < 0.3:
        # In front of the others, so that ports by position move.
        data["routers"] = {name: router, **routers}
    else:
        routers[name] = router


def _listener(random: Random) -> Data:
    listener: Data = {"port": random.randint(5_672, 5_699)}
    options = {
        "tls": random.choice((True, False, {"ca": "ca.pem"})),
        "authentication": random.choice(("none", "optional", "required")),
        "max_connections": random.randint(1, 100),
        "max_links": random.randint(1, 100),
        "max_frame_bytes": random.choice((512, 65_536)),
        "max_message_bytes": random.choice((0, 100, 1000)),
        "idle_timeout_s": random.choice((8, 16)),
        "host": random.choice(("127.0.0.1", "0.0.0.0")),
    }
    return listener | dict(random.sample(sorted(options.items(), key=str), random.randint(0, 2)))


def _remove_router(random: Random, data: Data) -> None:
    if len(data["routers"]) < 2:
        return
    name = random.choice(list(data["routers"]))
    del data["routers"][name]
    for router in data["routers"].values():
        router["connect"] = [each for each in router["connect"] if _to(each) != name]


def _to(connection: Any) -> str:
    return str(connection["to"] if isinstance(connection, dict) else connection)


def _change_router(random: Random, data: Data) -> None:
    name = random.choice(list(data["routers"]))
    router = data["routers"][name]
    others = [other for other in data["routers"] if other != name]
    match random.randint(0, 4):
        case 0:
            router["listeners"] = [_listener(random) for _ in range(random.randint(0, 2))]
        case 1:
            router["port"] = random.randint(26_660, 26_680)
        case 2 if router["connect"]:
            router["connect"][0] = {"to": _to(router["connect"][0]), "cost": random.randint(1, 9)}
        case 3 if router["listeners"]:
            router["listeners"][0] = {**_listener(random), "port": router["listeners"][0]["port"]}
        case _ if others:
            router["connect"] = random.sample(others, random.randint(0, min(2, len(others))))


def _add_broker(random: Random, data: Data) -> None:
    name = random.choice(("b1", "b2", "b3"))
    if random.random() < 0.75:
        broker: Data = {"data": f"./data/{name}{random.choice(('', '-new'))}"}
        if random.random() < 0.3:
            broker["port"] = random.randint(27_660, 27_680)
        if random.random() < 0.3:
            broker["disk_free_min_bytes"] = random.randint(0, 3)
    else:
        broker = {"url": f"amqp://u:{random.choice('pq')}@h{random.randint(1, 2)}"}
        if random.random() < 0.3:
            broker["address_prefix"] = "/queue/"
        if random.random() < 0.3:
            broker["subscriptions"] = "by_user"
    if random.random() < 0.3:
        broker["routers"] = random.sample(list(data["routers"]), 1)
    data["brokers"][name] = broker
    if random.random() < 0.5:
        data["default_broker"] = random.choice(list(data["brokers"]))


def _remove_broker(random: Random, data: Data) -> None:
    if data["brokers"]:
        del data["brokers"][random.choice(list(data["brokers"]))]
        if data.get("default_broker") not in data["brokers"]:
            data.pop("default_broker", None)


def _change_address(random: Random, data: Data) -> None:
    name = random.choice(NAMES)
    if random.random() < 0.25:
        data["addresses"].pop(name, None)
        return
    kind = random.choice(("anycast", "multicast", "unavailable", "queue", "queue", "topic"))
    entry: Data = {"type": kind}
    brokers = list(data["brokers"])
    options: dict[str, Data] = {
        "anycast": {"distribution": "closest", "retransmit": True, "priority": random.randint(0, 9)},
        "multicast": {"fill_to": True, "priority": random.randint(0, 9), "link_log": "off"},
        "queue": {
            "dead_letter": "dead",
            "expiry": "dead",
            "max_messages": random.randint(1, 9),
            "max_bytes": random.randint(1, 9),
            "broker": random.choice(brokers) if brokers else "b1",
            "brokers": brokers[:2],
            "broker_address": "there",
            "max_queues": random.randint(1, 9),
            "queue_expiry_s": random.randint(1, 9),
        },
        "topic": {"subscription_expiry_s": random.randint(1, 9), "max_messages": random.randint(1, 9)},
    }
    found = options.get(kind, {})
    entry |= dict(random.sample(sorted(found.items(), key=str), random.randint(0, min(2, len(found)))))
    data["addresses"][name] = entry


def _change_user(random: Random, data: Data) -> None:
    users = data.setdefault("users", {})
    name = random.choice(("alice", "bob", "anonymous"))
    if random.random() < 0.3:
        users.pop(name, None)
        return
    rights = random.sample(("send", "receive", "view", "browse", "manage"), 2)
    user: Data = {right: random.sample(PATTERNS, random.randint(0, 2)) for right in rights}
    if random.random() < 0.3:
        user["max_connections"] = random.randint(1, 9)
    if name != "anonymous" and random.random() < 0.5:
        user["password"] = SECRET
    users[name] = user


def _change_setting(random: Random, data: Data) -> None:
    key, value = random.choice(
        (
            ("mesh", "other"),
            ("node_tls", False),
            ("hello_interval_s", 2),
            ("link_logs", {"level": "off"}),
            ("link_logs", {"ring_bytes": 1 << 21, "redact": "key"}),
            ("metrics", {"detail": ["q.#"], "off": ["#"]}),
            ("watch", 9_090),
            ("watch", "off"),
            ("logs", {"keep": 5, "max_age_s": 60}),
        )
    )
    data[key] = value


EDITS: tuple[Callable[[Random, Data], None], ...] = (
    _add_router,
    _remove_router,
    _change_router,
    _change_router,
    _add_broker,
    _remove_broker,
    _change_address,
    _change_address,
    _change_user,
    _change_setting,
)
