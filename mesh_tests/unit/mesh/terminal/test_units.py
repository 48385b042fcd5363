"""Quantities as people type them."""

import pytest

from mesh.terminal.units import parse_duration_s, parse_rate_per_s, parse_size_bytes


@pytest.mark.parametrize(
    ("text", "seconds"), [("10", 10), ("10s", 10), ("250ms", 0.25), ("1.5m", 90), ("1h", 3600), ("30d", 2592000)]
)
def test_durations_become_seconds(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize(
    ("text", "count"), [("100", 100), ("1k", 1024), ("1K", 1024), ("64kb", 65536), ("1.5m", 1572864), ("1g", 1 << 30)]
)
def test_sizes_become_bytes(text: str, count: int) -> None:
    assert parse_size_bytes(text) == count


@pytest.mark.parametrize(
    ("text", "per_s"), [("500", 500), ("500/s", 500), ("30/m", 0.5), ("1k/s", 1000), ("36/h", 0.01)]
)
def test_rates_become_per_second(text: str, per_s: float) -> None:
    assert parse_rate_per_s(text) == per_s


@pytest.mark.parametrize("parse", [parse_duration_s, parse_size_bytes, parse_rate_per_s])
@pytest.mark.parametrize("text", ["", "x", "-1", "1 parsec", "1e9z"])
def test_what_is_no_quantity_is_refused(parse: object, text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a valid|expected a number"):
        parse(text)  # type: ignore[operator]


@pytest.mark.parametrize("text", ["0", "0/s", "5/ms", "5/y"])
def test_a_rate_that_never_sends_or_has_no_known_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid rate"):
        parse_rate_per_s(text)
