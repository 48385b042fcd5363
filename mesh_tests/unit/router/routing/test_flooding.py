"""Which link states go to whom, and when?"""

from __future__ import annotations

from router.routing.flooding import Flooding


def flooding() -> Flooding:
    """One that sent something at 5.0 s."""
    made = Flooding(0.01)
    made.on_change("r1", None)
    assert made.take(["a", "b"], 5.0) == {"a": ["r1"], "b": ["r1"]}
    return made


def test_the_first_change_goes_out_at_once_and_the_next_after_the_interval() -> None:
    flood = flooding()
    assert flood.next_deadline() is None
    flood.on_change("r2", "a")
    assert flood.take(["a", "b"], 5.009) == {}
    assert flood.next_deadline() == 5.01
    assert flood.take(["a", "b"], 5.01) == {"b": ["r2"]}
    assert flood.take(["a", "b"], 6.0) == {}


def test_what_is_urgent_waits_for_no_interval() -> None:
    flood = flooding()
    flood.on_change("r2", None)
    assert flood.take(["a"], 5.001, at_once=True) == {"a": ["r2"]}


def test_who_was_told_all_is_not_told_again_but_of_a_newer_version() -> None:
    flood = flooding()
    flood.on_change("r2", None)
    flood.on_told_all("a")
    flood.on_same("r2", "b")
    flood.on_change("r3", None)
    assert flood.take(["a", "b"], 6.0) == {"a": ["r3"], "b": ["r3"]}
    flood.on_change("r2", "b")
    flood.on_same("r2", "a")
    flood.on_change("r2", "b")
    assert flood.take(["a", "b"], 7.0) == {"a": ["r2"]}


def test_what_nobody_lacks_starts_no_interval() -> None:
    flood = Flooding(0.01)
    flood.on_change("r2", "a")
    assert flood.take(["a"], 1.0) == {}
    flood.on_change("r3", None)
    assert flood.take(["a"], 1.0) == {"a": ["r3"]}
