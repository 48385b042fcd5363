"""Do we keep rules 6 to 10 of those that proton's engine leaves to its users, and are they still its rules?

1 to 5 are in `test_engine_rules.py`.
"""

from __future__ import annotations

import os

import pytest

from mesh_tests.live.memory import resident_bytes
from mesh_tests.unit.wire.pipes import Pipe, send
from wire import delivery as deliveries
from wire.errors import ConnectionFault
from wire.events import LinkAttached
from wire.terminus import Terminus, TerminusType, source, target

IDLE_BYTES = 40 * 1024


# 6. Count sessions and links before opening them, and give no name twice. Also: test_endpoint.py (links),
#    live/test_bad_input.py (channel-max), sim/test_link_rules.py (2,000 links in a session; names used again)
def test_a_session_more_than_the_peer_takes_is_refused_here_and_those_before_it_go_on():
    pipe = Pipe(max_sessions=3)
    for _ in range(3):
        pipe.a.begin()
    pipe.run()
    with pytest.raises(ConnectionFault, match="3 sessions"):
        pipe.a.begin()
    pipe.run()
    assert pipe.a.is_open
    assert pipe.b.is_open


def test_sessions_that_ended_make_room_for_others():
    pipe = Pipe(max_sessions=3)
    for _ in range(10):
        session = pipe.a.begin()
        pipe.run()
        session.end()
        pipe.run()
    assert pipe.a.is_open


def test_two_links_of_one_name_are_two_in_two_directions():
    pipe = Pipe()
    session = pipe.a.begin()
    for link in (session.sender("same"), session.receiver("same")):
        link.open()
    pipe.run()
    assert len(pipe.take(pipe.b, LinkAttached)) == 2
    assert pipe.a.is_open


# 7. A settled delivery's memory is the next one's: no pointer is kept. Also: sim/test_engine_rules.py (no tie is left),
#    and `make asan`
@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the engine of make asan keeps no pool")
def test_a_delivery_that_was_settled_is_the_next_one():
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    receiver.grant(10)
    pipe.run()
    pointers = []
    for _ in range(3):
        pointers.append(send(sender, b"x"))
        deliveries.settle(pointers[-1])
        pipe.run()
    assert len(set(pointers)) == 1


# 8. A coordinator attach says nothing of itself, and a terminus without address needs its type
def test_a_coordinator_attach_brings_neither_address_nor_properties():
    pipe = Pipe()
    link = pipe.a.begin().sender("who and where")
    link.set_source(source(None))
    link.set_target(Terminus("somewhere", TerminusType.COORDINATOR))
    link.set_property("broker", "b1")
    link.open()
    pipe.run()
    (attached,) = pipe.take(pipe.b, LinkAttached)
    assert attached.link.remote_target.type is TerminusType.COORDINATOR
    assert attached.link.remote_target.address is None
    assert attached.link.remote_property("broker") is None
    assert attached.link.name == "who and where"


def test_a_terminus_without_address_keeps_its_other_fields():
    pipe = Pipe()
    link = pipe.a.begin().receiver("r")
    link.set_source(source(None, is_dynamic=True, capabilities=("here",), filter={"f": "x = 1"}))
    link.set_target(target(None, capabilities=("there",), properties={"p": 1}))
    link.open()
    pipe.run()
    (attached,) = pipe.take(pipe.b, LinkAttached)
    got = attached.link.remote_source
    assert (got.is_null, got.is_dynamic, got.capabilities, got.filter) == (False, True, ("here",), {"f": "x = 1"})
    assert attached.link.remote_target.capabilities == ("there",)
    assert attached.link.remote_target.properties == {"p": 1}


# 9. What never sent a frame costs no credit when it is aborted, and is told apart
def test_an_aborted_delivery_that_was_never_written_costs_no_credit_and_reaches_nobody():
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    receiver.grant(2)
    pipe.run()
    for _ in range(5):
        delivery = sender.start(b"t")
        sender.send(b"half")
        assert deliveries.is_buffered(delivery)
        sender.abort(delivery)
        pipe.run()
    assert sender.credit == receiver.credit == 2
    assert pipe.sinks[pipe.b].messages == []
    send(sender, b"whole")
    pipe.run()
    assert pipe.sinks[pipe.b].messages == [b"whole"]


def test_a_delivery_that_was_written_is_not_buffered_and_costs_its_credit_though_aborted():
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    receiver.grant(2)
    pipe.run()
    delivery = sender.start(b"t")
    sender.send(b"half")
    pipe.run()
    assert not deliveries.is_buffered(delivery)
    sender.abort(delivery)
    pipe.run()
    assert sender.credit == receiver.credit == 1


# 10. An idle connection is small
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer's own memory counts too")
def test_an_idle_connection_costs_less_than_40_KiB_at_each_end():
    pipes = [Pipe() for _ in range(20)]
    before = resident_bytes(os.getpid())
    pipes += [Pipe() for _ in range(200)]
    grown = resident_bytes(os.getpid()) - before
    assert grown / (2 * 200) < IDLE_BYTES
    for pipe in pipes:
        pipe.a.free()
        pipe.b.free()
