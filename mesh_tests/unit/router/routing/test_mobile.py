from router.routing.messages import MauAll, MauChanges
from router.routing.mobile import Changes, MobileAddresses


def _changes(added: set[str], removed: set[str]) -> Changes:
    return Changes(frozenset(added), frozenset(removed))


def test_changes_add_and_remove_holders() -> None:
    mobile = MobileAddresses()
    assert mobile.apply(MauChanges("r1", 1, 0, 1, ("M0a", "M0b"), ())) == _changes({"M0a", "M0b"}, set())
    mobile.apply(MauChanges("r2", 1, 0, 1, ("M0a",), ()))
    assert mobile.holders("M0a") == ("r1", "r2")
    assert mobile.apply(MauChanges("r1", 1, 1, 2, (), ("M0a",))) == _changes(set(), {"M0a"})
    assert mobile.holders("M0a") == ("r2",)
    assert mobile.addresses("r1") == {"M0b"}
    assert mobile.version("r1") == (1, 2)


def test_changes_follow_only_on_the_version_they_start_from() -> None:
    mobile = MobileAddresses()
    mobile.apply(MauChanges("r1", 1, 0, 3, ("M0a",), ()))
    assert mobile.follows(MauChanges("r1", 1, 3, 4, (), ()))
    assert not mobile.follows(MauChanges("r1", 1, 4, 5, (), ()))
    assert not mobile.follows(MauChanges("r1", 1, 2, 5, (), ()))
    assert not mobile.follows(MauChanges("r1", 2, 3, 4, (), ()))


def test_a_full_list_replaces_what_was_there_and_tells_the_difference() -> None:
    mobile = MobileAddresses()
    mobile.replace(MauAll("r1", 1, 4, ("M0a", "M0b")))
    assert mobile.replace(MauAll("r1", 1, 7, ("M0b", "M0c"))) == _changes({"M0c"}, {"M0a"})
    assert mobile.holders("M0a") == ()


def test_a_forgotten_router_holds_nothing() -> None:
    mobile = MobileAddresses()
    mobile.replace(MauAll("r1", 1, 4, ("M0a",)))
    assert mobile.forget("r1") == _changes(set(), {"M0a"})
    assert mobile.holders("M0a") == ()
    assert mobile.version("r1") == (0, 0)
    assert not mobile.forget("r1")
