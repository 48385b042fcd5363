"""The result of a report: its request, totals and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from mesh.reports.report_request import US_PER_S, ReportRequest
from recording.columns import BUCKET_ERROR

if TYPE_CHECKING:
    from linklogs.input_logs import InputLogs
    from linklogs.replay.run import Tables


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of a report.

    ``records``, ``size_bytes``: totals of the files that were read. ``tables``: each table by name.

    ``wider_us``: windows in us of tables that would be too long with the requested window. ``near``: existing addresses
    similar to the requested pattern, if no address matches the pattern.
    """

    order: ReportRequest
    records: int
    size_bytes: int
    notices: tuple[str, ...]
    began_us: int | None
    ended_us: int | None
    seconds: float
    tables: Mapping[str, pa.Table]
    wider_us: Mapping[str, int]
    near: tuple[str, ...] = ()

    @classmethod
    def of(cls, order: ReportRequest, logs: InputLogs, replayed: Tables, tables: Mapping[str, pa.Table]) -> Summary:
        read, time = replayed.read, replayed.time
        notices = (*logs.notices, *read.notices)
        times = time.from_us, time.to_us, time.seconds
        wider_us = replayed.wider_us(order.window_us)
        return cls(order, read.records, read.size_bytes, notices, *times, tables, wider_us, replayed.near)

    def window_us(self, name: str) -> int:
        """Return the width in us of the windows of the table ``name``."""
        return self.wider_us.get(name, self.order.window_us)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return all rows of the table ``name`` as dictionaries; for tables with few rows."""
        rows: list[dict[str, Any]] = self.tables[name].to_pylist()
        return rows

    def row(self, name: str, **wanted: object) -> dict[str, Any] | None:
        """Return the first row of the table ``name`` whose columns have the values of ``wanted``; None without one."""
        rows = self.rows(name)
        return next((row for row in rows if all(row[key] == value for key, value in wanted.items())), None)

    def to_map(self) -> dict[str, Any]:
        return {
            "logs": self.order.logs,
            "from": format_time(self.began_us, self.order.tz),
            "to": format_time(self.ended_us, self.order.tz),
            "seconds": self.seconds,
            "window_s": self.order.window_us / US_PER_S,
            "wider_windows_s": {name: each / US_PER_S for name, each in self.wider_us.items()},
            "address": self.order.address,
            "records": self.records,
            "size_bytes": self.size_bytes,
            "latency_error": BUCKET_ERROR,
            "left_out": list(self.notices),
            "totals": self.rows("mesh"),
            "tables": {name: table.num_rows for name, table in self.tables.items()},
        }


def format_time(at_us: int | None, tz: ZoneInfo) -> str | None:
    if at_us is None:
        return None
    return datetime.fromtimestamp(at_us / US_PER_S, tz).isoformat(sep=" ", timespec="seconds")
