"""Joins segments with their holdings (which queue has which messages of a segment), by a merge of both in order."""

from __future__ import annotations

from collections.abc import Iterator

from broker.store.read_store import HoldingRow
from broker.store.segment_tables import SegmentRow


def held_segments(
    segments: Iterator[SegmentRow], holdings: Iterator[HoldingRow]
) -> Iterator[tuple[SegmentRow | None, list[HoldingRow]]]:
    """Yield each of ``segments`` with its holdings, and None with holdings whose segment is not among them.

    Both inputs are in order of segment_id.
    """
    next_holding = next(holdings, None)
    for segment in segments:
        mine: list[HoldingRow] = []
        homeless: list[HoldingRow] = []
        while next_holding is not None and next_holding.segment_id <= segment.segment_id:
            (mine if next_holding.segment_id == segment.segment_id else homeless).append(next_holding)
            next_holding = next(holdings, None)
        if homeless:
            yield None, homeless
        yield segment, mine
    if next_holding is not None:
        yield None, [next_holding, *holdings]
