from __future__ import annotations

import pytest

from addressing.filter_kinds import FilterError, FilterKind

BOTH = tuple(FilterKind)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a", BOTH),
        ("a/b.c", BOTH),
        ("/", BOTH),
        ("a//b", BOTH),
        ("$SYS/#", BOTH),
        ("#", BOTH),
        ("x" * 1024, BOTH),
        ("x" * 1025, ()),
        ("", ()),
        ("a b", ()),
        ("a\0", ()),
        ("a\n", ()),
        ("+", BOTH),
        ("*", BOTH),
        ("a/+/b", BOTH),
        ("a/*/b", BOTH),
        ("a.*.b", BOTH),
        ("a+", (FilterKind.AMQP,)),
        ("+a/b", (FilterKind.AMQP,)),
        ("a.+", (FilterKind.AMQP,)),
        ("a*", (FilterKind.MQTT,)),
        ("a/*b", (FilterKind.MQTT,)),
        ("a#", ()),
        ("#a", ()),
        ("##", ()),
        ("a/#/b", (FilterKind.AMQP,)),
        ("#/a", (FilterKind.AMQP,)),
        ("a.#", (FilterKind.AMQP,)),
        ("a/b/#", BOTH),
    ],
)
def test_a_filter_is_valid_for_kinds_in_which_its_wildcards_are_whole_levels(
    text: str, kinds: tuple[FilterKind, ...]
) -> None:
    for kind in FilterKind:
        if kind in kinds:
            assert kind.check(text) == text
        else:
            with pytest.raises(FilterError):
                kind.check(text)


def test_a_sentence_names_the_wildcard_at_fault() -> None:
    with pytest.raises(FilterError, match=r"^filter 'a/b\+': the wildcard '\+' must stand for a whole level$"):
        FilterKind.MQTT.check("a/b+")
    with pytest.raises(FilterError, match=r"^filter '#/a': the wildcard '#' must be the last level of an mqtt filter$"):
        FilterKind.MQTT.check("#/a")
