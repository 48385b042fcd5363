"""Which random lives does `make soak` lead? A test of lives joins by one more line in ``LIVES``.

Its seeds come from `mesh_tests.seeds`, which reads LIFE_FIRST and LIFE_COUNT; what it reports with pytest's
``record_property`` as a number is added up in docs/proof/soak.md.
"""

from __future__ import annotations

from dataclasses import dataclass

SIMULATION = ("addressing", "wire", "recording", "router", "broker", "mesh/simulation", "mesh_tests/sim", "setup.cfg")
BROKER = ("wire", "recording", "broker", "mesh_tests/crash", "setup.cfg")
PEERS = (*SIMULATION, "mesh_tests/fuzz")
PROCESSES = (*SIMULATION[:-1], "mesh", "mesh_tests/faults", "setup.cfg")


@dataclass(frozen=True)
class Life:
    """A test file, or one test of it, that leads random lives."""

    test: str
    """What pytest is to run, below mesh_tests."""
    what: str
    seeds: int
    """As many are a whole soak of one revision."""
    code: tuple[str, ...] = SIMULATION
    """Files and folders that the lives are of: seeds go on where they were while none of these changes."""
    batch: int = 200
    """As many seeds in one go."""
    batch_s: float = 180.0
    """A batch may take so long on a slow machine: none begins that would end after the time is up."""
    workers: str = "auto"
    """What pytest's `-n` gets; 0 for a test that brings processes of its own."""
    is_sanitized: bool = False
    """It runs under AddressSanitizer."""
    environment: tuple[tuple[str, str], ...] = ()


LIVES = (
    Life("sim/test_walk.py", "clients, trunks, routers, brokers and costs come, fail and change", 2500),
    Life("sim/test_walk_fickle.py", "consumers that take credit back, drain, stall and settle in batches", 2500),
    Life("sim/test_fallback_walk.py", "an anycast address that falls back to a queue, and its order", 2500),
    Life("sim/test_walk_edges.py", "edge routers, and the uplinks of them, with fickle consumers and without", 1000),
    Life("sim/test_vanishing.py", "links, sessions and connections vanish in the middle of anything", 2500),
    Life("sim/test_walk_broad.py", "random meshes with every option of an address, slow and silent trunks", 2500),
    Life(
        "fuzz/test_simulated_peers.py",
        "800 hostile dialogues at the ports of every kind of node, under AddressSanitizer",
        63,
        PEERS,
        batch=4,
        batch_s=500.0,
        is_sanitized=True,
    ),
    Life(
        "fuzz/test_live_peers.py",
        "20,000 hostile dialogues at the ports of real processes, beside a bystander",
        1,
        (*PEERS, "mesh"),
        batch_s=500.0,
        workers="0",
        environment=(("FUZZ_COUNT", "20000"),),
    ),
    Life("crash/test_broker_crash.py", "20 times kill -9 of a broker, at random moments and failpoints", 25, BROKER, 4),
    Life("crash/storage/test_power_cuts.py", "the power goes while a store is written", 200, BROKER, 20),
    Life(
        "live/test_killed_hosts.py",
        "half of the hosts, observers and nodes are killed, and hosts cut off: observers show what is known",
        25,
        (*PROCESSES, "mesh_tests/live"),
        batch=4,
        batch_s=400.0,
        workers="0",
    ),
    Life(
        "live/test_many_published_addresses.py",
        "1,000,000 messages to 100,000 addresses of a topic over 100 links without address, to 100 subscribers with "
        "wildcards; then 100,000 messages twice, while a router and the broker are killed",
        1,
        (*PROCESSES, "mesh_tests/live"),
        batch=1,
        batch_s=500.0,
        workers="1",
        environment=(("PUBLISHED_WHOLE", "1"),),
    ),
)
