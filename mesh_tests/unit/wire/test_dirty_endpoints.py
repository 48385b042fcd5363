"""Which of the endpoints that were touched does somebody have to look after?"""

from __future__ import annotations

from wire.core import DirtyEndpoints
from wire.endpoint import Endpoint, EndpointSettings


def said_all() -> tuple[DirtyEndpoints, Endpoint]:
    """An open endpoint that has written all it had to say."""
    dirty = DirtyEndpoints()
    endpoint = Endpoint(EndpointSettings("a"), dirty=dirty)
    endpoint.open()
    while endpoint.output():
        pass
    assert dirty.pop() is None
    return dirty, endpoint


def test_one_with_output_is_handed_out_once():
    dirty = DirtyEndpoints()
    endpoint = Endpoint(EndpointSettings("a"), dirty=dirty)
    endpoint.open()
    endpoint.mark_dirty()
    assert dirty.pop() is endpoint
    assert dirty.pop() is None


def test_one_that_was_touched_and_has_nothing_to_say_is_not():
    dirty, endpoint = said_all()
    endpoint.mark_dirty()
    assert len(dirty) == 1
    assert dirty.pop() is None
    assert len(dirty) == 0


def test_one_with_something_to_say_is_found_behind_others_that_have_nothing():
    dirty, quiet = said_all()
    speaker = Endpoint(EndpointSettings("b"), dirty=dirty)
    speaker.open()
    quiet.mark_dirty()
    assert dirty.pop() is speaker


def test_one_on_which_somebody_waits_for_room_is_handed_out_to_be_told():
    dirty, endpoint = said_all()
    endpoint.wait_for_room(lambda: None)
    endpoint.mark_dirty()
    assert dirty.pop() is endpoint


def test_one_that_has_closed_is_handed_out_though_it_has_nothing_to_say():
    dirty, endpoint = said_all()
    endpoint.close()
    while endpoint.output():
        pass
    dirty.clear()
    endpoint.mark_dirty()
    assert dirty.pop() is endpoint


def test_one_that_is_freed_is_forgotten():
    dirty, endpoint = said_all()
    endpoint.begin()
    endpoint.mark_dirty()
    endpoint.free()
    assert len(dirty) == 0
