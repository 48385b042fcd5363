"""Clocks from differences between pairs of nodes."""

from linklogs.replay.clocks import solved


def test_the_one_that_differs_from_the_others_is_off() -> None:
    assert solved({("a", "b"): 0.0, ("b", "c"): 2_000_000.0, ("a", "c"): 2_000_000.0}) == {
        "a": 0,
        "b": 0,
        "c": 2_000_000,
    }


def test_differences_add_up_along_the_way() -> None:
    found = solved({("a", "b"): 100.0, ("b", "c"): 100.0, ("c", "d"): 100.0, ("e", "d"): -100.0})
    assert found == {"a": -200, "b": -100, "c": 0, "d": 100, "e": 200}


def test_nodes_that_nothing_ties_have_clocks_of_their_own() -> None:
    assert solved({("a", "b"): 0.0, ("x", "y"): 50.0}) == {"a": 0, "b": 0, "x": 0, "y": 50}


def test_nothing_is_known_of_nothing() -> None:
    assert solved({}) == {}
