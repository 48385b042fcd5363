"""The rows of a benchmark's result, shown as a table to people, or printed as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from mesh.terminal.figures import rounded
from mesh.terminal.output import Output

# The column title of each figure; a figure without a value in any row has no column.
COLUMNS = {
    "cpu_us_per_message": "CPU/MSG",
    "cpu_us_spread": "(SPREAD)",
    "messages_per_s": "MSG/S",
    "messages_per_s_spread": "(SPREAD)",
    "accept_p50_us": "ACCEPT P50",
    "accept_p99_us": "ACCEPT P99",
    "in_flight": "IN FLIGHT",
    "written_bytes_per_message": "WRITTEN/MSG",
    "resident_bytes": "RESIDENT",
    "p50_us": "P50",
    "p95_us": "P95",
    "p99_us": "P99",
    "p99_us_spread": "(SPREAD)",
    "max_us": "MAX",
    "max_us_spread": "(SPREAD)",
    "bytes_each": "BYTES EACH",
    "bytes_per_address": "BYTES/ADDRESS",
    "bytes_per_address_spread": "(SPREAD)",
    "idle_bytes_per_address": "AFTER IDLING",
    "cpu_us_each": "CPU EACH",
    "cpu_us_each_spread": "(SPREAD)",
    "cycles_per_s": "CYCLES/S",
    "cycles_per_s_spread": "(SPREAD)",
    "handshakes_per_s": "HANDSHAKES/S",
    "handshakes_per_s_spread": "(SPREAD)",
    "shares_differ_percent": "SHARES DIFFER BY",
    "shares_differ_percent_spread": "(SPREAD)",
    "idle_consumers": "WITHOUT A MESSAGE",
    "pss_bytes": "PSS",
    "pss_bytes_spread": "(SPREAD)",
    "connections_per_s": "CONNECTIONS/S",
    "attaches_per_s": "ATTACHES/S",
    "detaches_per_s": "DETACHES/S",
    "cpu_us_per_detach": "CPU/DETACH",
    "lost": "LOST",
    "sender_us_per_message": "SENDER",
    "receiver_us_per_message": "RECEIVER",
    "released": "RELEASED",
    "generator_us_each": "GENERATOR",
    "stream_s": "STREAMS TOOK",
    "grown_bytes": "GROWN BY",
}


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One row of a benchmark's result; a figure of None does not apply.

    ``wrongs`` describes violations that a correct server never commits.
    """

    work: str
    mode: str
    figures: Mapping[str, Any]
    wrongs: tuple[str, ...] = ()

    def to_map(self) -> dict[str, Any]:
        told = {key: round_all(value) for key, value in self.figures.items() if value is not None}
        return {"work": self.work, "mode": self.mode, **told, **({"wrongs": list(self.wrongs)} if self.wrongs else {})}


def round_all(value: Any) -> Any:
    if isinstance(value, float):
        return rounded(value)
    return [round_all(each) for each in value] if isinstance(value, list) else value


def show(rows: Sequence[BenchRow], out: Output) -> None:
    if out.is_json:
        listed = [{"schema": f"amqpmesh.{out.schema}/1", **row.to_map()} for row in rows]
        click.echo(json.dumps(listed, ensure_ascii=False))
        return
    keys = [key for key in COLUMNS if any(row.figures.get(key) is not None for row in rows)]
    cells = [[row.work, row.mode, *(cell(key, row.figures.get(key)) for key in keys)] for row in rows]
    out.table(["WORK", "MODE", *(COLUMNS[key] for key in keys)], cells)


def cell(key: str, value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, list):
        return f"{number(key, value[0])} to {number(key, value[1])}"
    return number(key, value) + unit(key)


def number(key: str, value: float) -> str:
    if "bytes" in key.split("_"):
        return f"{value:,.0f}"
    if isinstance(value, int) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def unit(key: str) -> str:
    if key.endswith("_percent"):
        return " %"
    return " us" if "us" in key.split("_") else " s" if key.endswith("_s") and "per" not in key else ""
