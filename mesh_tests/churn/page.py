"""The proof of a churn: a page with its figures, and a chart of its samples, which needs no other file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from mesh_tests.churn.samples import (
    BLOCKS,
    DESCRIPTORS,
    RESIDENT,
    Sample,
    Trend,
    after_warm_up,
    from_maps,
    trends,
    warm_up_s,
)

CHART = "churn.svg"
TITLES = {
    RESIDENT: "resident memory, MB",
    DESCRIPTORS: "open descriptors",
    BLOCKS: "blocks that Python has allocated, thousands",
}
UNITS = {RESIDENT: 1e6, DESCRIPTORS: 1.0, BLOCKS: 1e3}
COLORS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#a463f2")
WIDTH, PANEL, LEFT, RIGHT, TOP, BOTTOM = 900, 250, 60, 110, 30, 30
HEAD = """# Churn

Clients of all kinds come and go at three routers in a line and an embedded broker, each of them a process: connections
that close, or vanish; links to addresses of each type, with wildcards, with dynamic addresses, and to durable
subscriptions that end; senders without an address, which publish to ever new addresses. The number of clients and links
stays the same. `make soak` leads this life for half an hour in the background (`mesh_tests/churn/`), and writes this
page; [soak](soak.md) has a row of each.

Fifteen times everybody leaves: the routers must let go of all clients and addresses, and the processes are looked at
while they rest, after a collection of unreachable objects.

The first third is the warm-up. The rest of the time is ten windows, and the least value of each window counts, since
what is in no use any more goes every few minutes; of blocks the value of each rest counts. A block is about one object
of Python. A measure of a process is flat if a straight line through these values rises by at most 3 % of their mean,
and for blocks by at most 10,000. A rise of less than 0.5 MiB, 2 descriptors or 2,000 blocks is flat in any case.
"""


def page(found: Mapping[str, Any], revision: str, date: str) -> str:
    """The page in Markdown, for the report of a churn that is over."""
    samples, rests = from_maps(found["samples"]), from_maps(found["rests"])
    lines = [
        HEAD,
        f"![memory, descriptors and objects over time]({CHART})\n",
        f"{date}, revision {revision}, seed {found['seed']}, {found['seconds']:,.0f} s: **{found['state']}**.",
        *([f"\n{found['why']}"] if "why" in found else []),
        "",
        "| counted | |",
        "|---|---|",
        *(f"| {name} | {count:,} |" for name, count in found["counts"].items()),
        "",
        "| process | measure | mean after the warm-up | rise | allowed | |",
        "|---|---|---|---|---|---|",
        *(_row(each) for each in trends(samples, rests)),
        "",
        "CPU of the processes after the warm-up, in % of a core: "
        + ", ".join(f"{name} {share:.1f}" for name, share in cpu_shares(samples).items())
        + ".",
    ]
    return "\n".join(lines) + "\n"


def _row(trend: Trend) -> str:
    figures = (
        f"{value:,.1f}" if value < 100 else f"{value:,.0f}" for value in (trend.level, trend.growth, trend.allowed)
    )
    return f"| {trend.process} | {trend.measure} | {' | '.join(figures)} | {'flat' if trend.is_flat else '**grows**'} |"


def cpu_shares(samples: Sequence[Sample]) -> dict[str, float]:
    after = after_warm_up(samples)
    first, last = after[0], after[-1]
    return {
        name: 100 * (measures["cpu_s"] - first.processes[name]["cpu_s"]) / (last.at_s - first.at_s)
        for name, measures in last.processes.items()
    }


def chart(samples: Sequence[Sample]) -> str:
    """An SVG image: a panel for each measure, a line for each process, the warm-up in grey."""
    height = len(TITLES) * PANEL
    panels = "".join(_panel(measure, samples, number * PANEL) for number, measure in enumerate(TITLES))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12"><rect width="{WIDTH}" height="{height}" fill="white"/>{panels}</svg>\n'
    )


def _panel(measure: str, samples: Sequence[Sample], y: float) -> str:
    names = [name for name, measures in samples[0].processes.items() if measure in measures]
    unit, end_s = UNITS[measure], samples[-1].at_s
    most = max(each.processes[name][measure] for each in samples for name in names) / unit * 1.05
    width, height = WIDTH - LEFT - RIGHT, PANEL - TOP - BOTTOM

    def x_of(at_s: float) -> float:
        return LEFT + width * at_s / end_s

    def y_of(value: float) -> float:
        return y + TOP + height * (1 - value / most)

    parts = [
        f'<text x="{LEFT}" y="{y + TOP - 10}" font-weight="bold">{escape(TITLES[measure])}</text>',
        f'<rect x="{LEFT}" y="{y + TOP}" width="{x_of(warm_up_s(samples)) - LEFT:.1f}" height="{height}" fill="#eee"/>',
        *_axes(most, end_s, x_of, y_of),
    ]
    # Labels at the right stand in the order of the last values, and never on each other.
    lowest = y + TOP + height + 14.0
    for name in sorted(names, key=lambda name: samples[-1].processes[name][measure]):
        color = COLORS[list(samples[0].processes).index(name) % len(COLORS)]
        values = [(each.at_s, each.processes[name][measure] / unit) for each in samples]
        points = " ".join(f"{x_of(at_s):.1f},{y_of(value):.1f}" for at_s, value in values)
        lowest = min(lowest - 14, y_of(values[-1][1]) + 4)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        parts.append(f'<text x="{LEFT + width + 6}" y="{lowest:.1f}" fill="{color}">{escape(name)}</text>')
    return "".join(parts)


def _axes(most: float, end_s: float, x_of: Callable[[float], float], y_of: Callable[[float], float]) -> list[str]:
    parts = []
    for number in range(5):
        value = most * number / 4
        parts.append(
            f'<line x1="{x_of(0)}" x2="{x_of(end_s)}" y1="{y_of(value):.1f}" y2="{y_of(value):.1f}" stroke="#ccc"/>'
            f'<text x="{x_of(0) - 6}" y="{y_of(value) + 4:.1f}" text-anchor="end">{value:,.0f}</text>'
        )
        at_s = end_s * number / 4
        parts.append(
            f'<text x="{x_of(at_s):.1f}" y="{y_of(0) + 16:.1f}" text-anchor="middle">{at_s / 60:.1f} min</text>'
        )
    return parts
