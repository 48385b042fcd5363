"""Random filters and addresses of each kind, and what the rules of each kind say of them, without a tree."""

from __future__ import annotations

import re
from collections.abc import Callable

from hypothesis import strategies as st

from addressing.filter_kinds import FilterKind
from addressing.pattern import PatternSet


def _joined(tokens: list[str]) -> st.SearchStrategy[str]:
    delimiters = st.lists(st.sampled_from("./"), min_size=len(tokens), max_size=len(tokens))
    return delimiters.map(lambda drawn: "".join(d + t for d, t in zip(drawn, tokens, strict=True))[1:])


FILTERS = st.lists(st.sampled_from(["a", "b", "*", "#"]), min_size=1, max_size=5).flatmap(_joined)
ADDRESSES = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5).flatmap(_joined)


def naive_amqp(filter_: str, address: str) -> bool:
    return address in PatternSet([filter_])


def naive_mqtt(filter_: str, address: str) -> bool:
    """The rules of MQTT as one regular expression for the filter."""
    if address.startswith("$") and filter_[0] in "+#":
        return False
    if filter_ == "#":
        return True
    head, is_open = (filter_[:-2], True) if filter_.endswith("/#") else (filter_, False)
    levels = "/".join("[^/]*" if level == "+" else re.escape(level) for level in head.split("/"))
    return re.fullmatch(levels + ("(/.*)?" if is_open else ""), address) is not None


def _mqtt(levels: list[str]) -> str:
    """A filter that ends at its first `#`."""
    return "/".join(levels[: levels.index("#") + 1] if "#" in levels else levels)


NAIVE: dict[FilterKind, Callable[[str, str], bool]] = {FilterKind.AMQP: naive_amqp, FilterKind.MQTT: naive_mqtt}
MQTT_FILTERS = st.lists(st.sampled_from(["a", "b", "", "a.b", "$x", "+", "#"]), min_size=1, max_size=5).map(_mqtt)
MQTT_ADDRESSES = st.lists(st.sampled_from(["a", "b", "", "a.b", "$x"]), min_size=1, max_size=5).map("/".join)
ANY: dict[FilterKind, tuple[st.SearchStrategy[str], st.SearchStrategy[str]]] = {
    FilterKind.AMQP: (FILTERS, ADDRESSES),
    FilterKind.MQTT: (MQTT_FILTERS.filter(bool), MQTT_ADDRESSES.filter(bool)),
}
