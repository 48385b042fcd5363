"""`bench handshakes`: handshakes that fail are sentences, and its router has a listener for TLS and one without."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from addressing.topology.model import Topology
from mesh.bench.dial import BenchServer, listen
from mesh.bench.handshakes import HandshakesBenchRequest
from mesh.bench.loopback_mesh import LoopbackPlan, topology_of
from mesh.bench.tls_load import TlsLoad, shake_hands
from mesh.client.errors import Unreachable

SOON_S = 0.2


def closed_place() -> BenchServer:
    with listen() as listening:
        return BenchServer("127.0.0.1", listening.getsockname()[1], is_tls=True)


def test_a_router_for_handshakes_has_a_listener_for_tls_beside_the_one_of_the_others() -> None:
    topology = Topology.model_validate(topology_of(LoopbackPlan(1, has_tls_listener=True)))
    plain, encrypted = topology.routers["r1"].listeners
    assert (plain.tls is None, encrypted.tls is None) == (True, False)
    assert plain.port != encrypted.port


def test_nobody_to_shake_hands_with_is_said_before_the_load_begins() -> None:
    steps = shake_hands({"place": closed_place().to_map(), "at_once": 1, "seconds": SOON_S})
    with pytest.raises(Unreachable, match="TLS handshake failed: connection refused"):
        next(steps)


def test_a_server_that_ends_a_handshake_ends_all_threads_with_the_reason() -> None:
    with listen() as listening:
        place = BenchServer("127.0.0.1", listening.getsockname()[1], is_tls=True)

        def hang_up() -> None:
            with suppress(OSError):
                while True:
                    listening.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        load = TlsLoad(place)
        load.shake_until(float("inf"))
        listening.shutdown(2)
        thread.join()
    assert load.failed is not None
    assert load.failed.message.startswith(f"{place.name}: TLS handshake failed: ")
    assert load.count == 0


def test_a_load_whose_time_is_over_makes_no_handshake() -> None:
    load = TlsLoad(closed_place())
    load.shake_until(0.0)
    assert (load.count, load.failed) == (0, None)


def test_rows_name_how_many_handshakes_are_under_way() -> None:
    assert HandshakesBenchRequest(4, 1.0, 1, 1.0).name("r") == "r, handshakes, 4 at once"
