"""Each fault heals what it broke and nothing else, and is proven by nothing else."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any, cast

from mesh.drills.faults.certificates import EXPIRED
from mesh.drills.faults.commands import CommandInjection
from mesh.drills.faults.links import LINK_INJECTIONS, LinkInjection
from mesh.drills.leases import Leases
from mesh.drills.mesh_copy import MeshCopy
from mesh.drills.model import FAULTS, Command
from mesh.drills.proxy import LinkProxy

LINK = frozenset(("r1", "r2"))


def on(proxy: LinkProxy, kind: str, **fields: Any) -> LinkInjection:
    stage = cast(MeshCopy, SimpleNamespace(proxies={LINK: proxy}, dialers={LINK: "r1"}))
    return LINK_INJECTIONS[kind](cast(Any, FAULTS[kind].model_validate({"link": ["r1", "r2"], **fields})), stage)


def test_of_faults_at_once_on_one_link_each_heals_its_own():
    async def check() -> None:
        proxy = LinkProxy("127.0.0.1", 1, random.Random(1))
        faults = {
            "blackhole": on(proxy, "blackhole"),
            "latency": on(proxy, "latency", latency="100ms"),
            "bandwidth": on(proxy, "bandwidth", rate="10kB/s"),
            "loss": on(proxy, "loss", loss="5%"),
        }
        for fault in faults.values():
            await fault.apply()
        for kind in ("loss", "latency"):
            await faults[kind].heal()
        lane = proxy.forth
        assert (lane.loss, lane.latency_s, lane.rate_bytes_per_s, lane.is_open.is_set()) == (0.0, 0.0, 10_240.0, False)
        await faults["bandwidth"].heal()
        assert not lane.is_open.is_set()
        await faults["blackhole"].heal()
        assert (lane.rate_bytes_per_s, lane.is_open.is_set()) == (0.0, True)

    asyncio.run(check())


def test_a_neighbor_that_expired_does_not_show_that_a_certificate_has():
    assert EXPIRED.search("TLS: sslv3 alert certificate expired")
    assert EXPIRED.search("certificate not trusted: certificate has expired")
    assert not EXPIRED.search('{"event": "neighbor_expired", "router": "r2"}')


def test_a_command_that_should_heal_and_fails_leaves_the_fault():
    async def healed(command: str) -> bool:
        with Leases() as leases:
            injection = CommandInjection(Command(run="true", heal=command), leases)
            await injection.apply()
            await injection.heal()
        return injection.was_healed

    assert asyncio.run(healed("true"))
    assert not asyncio.run(healed("false"))
