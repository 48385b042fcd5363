from router.routing.advertisements import Advertisements


def test_the_first_change_goes_out_at_once_and_the_next_ones_together() -> None:
    advertising = Advertisements(0.02)
    advertising.change(["b", "a"], [], set())
    assert advertising.take(5.0) == (("a", "b"), ())
    advertising.change(["c"], [], {"a", "b"})
    assert advertising.take(5.01) is None
    advertising.change(["d"], ["a"], {"a", "b"})
    assert advertising.next_deadline() == 5.02
    assert advertising.take(5.02) == (("c", "d"), ("a",))
    assert advertising.next_deadline() is None


def test_what_is_taken_back_before_it_was_told_is_never_told() -> None:
    advertising = Advertisements(0.02)
    advertising.change(["a"], ["b"], {"b"})
    advertising.change(["b"], ["a"], {"b"})
    assert advertising.take(5.0) is None


def test_what_is_known_or_unknown_already_is_not_told_again() -> None:
    advertising = Advertisements(0.02)
    advertising.change(["a"], ["b"], {"a"})
    assert advertising.take(5.0) is None
