"""Computes exact percentiles of more latencies than fit into memory.

All latencies are written to a temporary file and counted by bucket. The counts tell the bucket in which a percentile
lies; a second pass over the file reads only the latencies in this bucket.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

import numpy

from linklogs.generating.plan import Array
from linklogs.generating.seconds import buckets_of
from recording.columns import bucket_of

SHARES = {"p50_us": 50, "p95_us": 95, "p99_us": 99}
"""The percentiles computed, each with its percentage."""
_BUCKETS = bucket_of(2**32 - 1) + 1
_LATENCY = numpy.dtype([("series", "<u4"), ("took_us", "<u4")])
_READ_AT_ONCE = 1 << 20

Group: TypeAlias = tuple[int, ...]
"""Numbers of the series whose latencies are merged before the percentiles are computed."""


class Latencies:
    """Collects latencies of a number of series (``series``), and computes their percentiles.

    The temporary file in ``directory`` takes 8 bytes for each latency, until closed.
    """

    def __init__(self, series: int, directory: Path) -> None:
        self._counts = numpy.zeros((series, _BUCKETS), numpy.int64)
        self._longest = numpy.zeros(series, numpy.int64)
        self._file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115

    def __enter__(self) -> Latencies:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def add(self, series: Array, took_us: Array) -> None:
        numpy.add.at(self._counts, (series, buckets_of(took_us)), 1)
        numpy.maximum.at(self._longest, series, took_us)
        rows = numpy.empty(len(series), _LATENCY)
        rows["series"], rows["took_us"] = series, took_us
        self._file.write(rows.tobytes())

    def of(self, groups: Sequence[Group]) -> list[dict[str, int]]:
        """Compute p50, p95, p99 (nearest rank) and the maximum of each group, in us; an empty dict for a group without
        latencies.
        """
        sought = [{name: self._find(group, share) for name, share in SHARES.items()} for group in groups]
        wanted = {(series, place[0]) for group, found in zip(groups, sought, strict=True) for place in found.values()
                  for series in group}  # fmt: skip
        values = self._read(wanted)
        return [self._exact(group, found, values) for group, found in zip(groups, sought, strict=True)]

    def _find(self, group: Group, share: int) -> tuple[int, int]:
        """Find the bucket that holds the percentile ``share`` of a group, and the percentile's rank within this
        bucket.
        """
        running = numpy.cumsum(self._counts[list(group)].sum(axis=0))
        place = max(0, -(-int(running[-1]) * share // 100) - 1)
        bucket = min(int(numpy.searchsorted(running, place, side="right")), _BUCKETS - 1)
        return bucket, place - int(running[bucket - 1] if bucket else 0)

    def _exact(
        self, group: Group, found: dict[str, tuple[int, int]], values: dict[tuple[int, int], Array]
    ) -> dict[str, int]:
        if not self._counts[list(group)].any():
            return {}
        told = {}
        for name, (bucket, place) in found.items():
            inside = numpy.sort(numpy.concatenate([values[series, bucket] for series in group]))
            told[name] = int(inside[place])
        return {**told, "max_us": int(self._longest[list(group)].max())}

    def _read(self, wanted: set[tuple[int, int]]) -> dict[tuple[int, int], Array]:
        is_wanted = numpy.zeros(self._counts.shape, bool)
        for series, bucket in wanted:
            is_wanted[series, bucket] = True
        found: dict[tuple[int, int], list[Array]] = {each: [] for each in wanted}
        for rows in self._rows():
            buckets = buckets_of(rows["took_us"].astype(numpy.int64))
            kept = is_wanted[rows["series"], buckets]
            for series, bucket, values in _apart(rows["series"][kept], buckets[kept], rows["took_us"][kept]):
                found[series, bucket].append(values)
        return {each: numpy.concatenate(parts or [numpy.zeros(0, "<u4")]) for each, parts in found.items()}

    def _rows(self) -> Iterator[Array]:
        self._file.seek(0)
        while data := self._file.read(_READ_AT_ONCE * _LATENCY.itemsize):
            yield numpy.frombuffer(data, _LATENCY)


def _apart(series: Array, buckets: Array, values: Array) -> Iterator[tuple[int, int, Array]]:
    keys = series.astype(numpy.int64) * _BUCKETS + buckets
    order = numpy.argsort(keys, kind="stable")
    distinct, first = numpy.unique(keys[order], return_index=True)
    for key, part in zip(distinct, numpy.split(values[order], first[1:]), strict=True):
        yield int(key) // _BUCKETS, int(key) % _BUCKETS, part
