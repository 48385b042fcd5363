"""Makes one set of figures from the figures of repeated runs: medians, sums, and the least and greatest value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mesh.terminal.figures import median

Figures = Mapping[str, float | None]

SPREADS = {
    "cpu_us_per_message": "cpu_us_spread",
    "messages_per_s": "messages_per_s_spread",
    "cpu_us_each": "cpu_us_each_spread",
    "bytes_per_address": "bytes_per_address_spread",
    "cycles_per_s": "cycles_per_s_spread",
    "handshakes_per_s": "handshakes_per_s_spread",
    "shares_differ_percent": "shares_differ_percent_spread",
    "p99_us": "p99_us_spread",
    "max_us": "max_us_spread",
    "pss_bytes": "pss_bytes_spread",
}
"""The figures whose least and greatest value are kept, with the key of both values."""
SUMMED = ("lost", "released")


def merged(runs: Sequence[Figures], spreads: Mapping[str, str] = SPREADS) -> dict[str, Any]:
    """Return the median of each figure over the runs that have the figure, or the sum of a count of faults.

    A figure that is None in every run is left out.
    """
    figures: dict[str, Any] = {}
    for key in dict.fromkeys(key for run in runs for key in run):
        values = [value for run in runs if (value := run.get(key)) is not None]
        if not values:
            continue
        if key in SUMMED:
            figures[key] = sum(values)
            continue
        figures[key] = median(values)
        if key in spreads and len(values) > 1:
            figures[spreads[key]] = [min(values), max(values)]
    return figures
