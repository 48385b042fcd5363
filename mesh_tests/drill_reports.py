"""Reports of drills as they might have been: all that a page, a JUnit file or a terminal must be able to show."""

from __future__ import annotations

import random
from dataclasses import replace

from mesh.drills.report import (
    AddressReport,
    Check,
    Drawing,
    DrillReport,
    DrillVerdict,
    Example,
    FaultReport,
    FaultResult,
    LatencyFigures,
    MessageCounts,
    Series,
)

TYPES = ("anycast", "queue", "multicast", "topic", "anycast")
NAMES = ("orders", "invoices", "prices", "events", "rpc")
KINDS = ("kill", "cut", "pause", "latency", "restart")
RATE = 500
BIN_S = 0.1


def fault(number: int, kind: str, targets: tuple[str, ...], at_s: float, healed_s: float | None) -> FaultReport:
    label = f"{kind} {'-'.join(targets)}"
    return FaultReport(
        id=str(number),
        label=label,
        kind=kind,
        targets=targets,
        at_s=at_s,
        healed_s=healed_s,
        did_bite=True,
        evidence=(
            f"{label}: applied at {at_s:.1f} s",
            "r1 lost its neighbor",
            "healed: both ends are neighbors again" if healed_s else "not healed: it stays away",
        ),
        detection_ms=9.2,
        detected_by="r1",
    )


def series(rng: random.Random, end_s: float, holes: list[tuple[float, float]], failed: int) -> Series:
    bins = range(int(end_s / BIN_S))
    due = int(RATE * BIN_S)
    is_hole = [any(start <= i * BIN_S < end for start, end in holes) for i in bins]
    p50 = [rng.uniform(0.6, 0.9) * (30 if hole else 1) for hole in is_hole]
    return Series(
        bin_s=BIN_S,
        sent=tuple(due + rng.randint(-1, 1) for _ in bins),
        received=tuple(rng.randint(0, 8) if hole else due + rng.randint(-1, 1) for hole in is_hole),
        failed=tuple(failed if hole else 0 for hole in is_hole),
        p50_ms=tuple(None if hole and rng.random() < 0.3 else value for value, hole in zip(p50, is_hole, strict=True)),
        p99_ms=tuple(value * rng.uniform(2, 4) for value in p50),
        max_ms=tuple(value * rng.uniform(5, 15) for value in p50),
    )


def dots(rng: random.Random, count: int, end_s: float, holes: list[tuple[float, float]], modified: int, lost: int):
    made = []
    for _ in range(count - modified - lost):
        due_s = rng.uniform(0, end_s)
        late = next((1000 * (end - due_s) for start, end in holes if start <= due_s < end), 0.0)
        made.append((round(due_s, 4), "accepted", round(rng.lognormvariate(-0.3, 0.5) + late, 3)))
    made += [(round(rng.uniform(*holes[0]), 4), "modified", None) for _ in range(modified)]
    made += [(round(rng.uniform(*holes[-1]), 4), "lost", None) for _ in range(lost)]
    return tuple(sorted(made, key=lambda dot: dot[0]))


def result(fault_id: str, address: str, outage_ms: float, counts: MessageCounts, passed: bool = True) -> FaultResult:
    return FaultResult(
        fault=fault_id,
        address=address,
        detection_ms=9.2,
        outage_ms=outage_ms,
        first_delivery_ms=outage_ms * 1.1,
        recovery_ms=outage_ms * 3,
        before=LatencyFigures(2500, 0.7, 2.1, 6.0),
        during=LatencyFigures(2500, 0.9, outage_ms * 0.9, outage_ms),
        after=LatencyFigures(2500, 0.7, 2.2, 7.0),
        counts=counts,
        stalls=1,
        longest_stall_ms=104.0,
        passed=passed,
    )


def ring(routers: int, brokers: tuple[tuple[str, tuple[str, ...]], ...] = (("b1", ("r1", "r2")),)) -> Drawing:
    names = tuple(f"r{i + 1}" for i in range(routers))
    return Drawing(
        routers=names,
        brokers=brokers,
        links=tuple((names[i], names[(i + 1) % routers], 1 + i % 3) for i in range(routers)),
    )


def passing(addresses: int = 2, dots_each: int = 600, seed: int = 7) -> DrillReport:
    rng = random.Random(seed)
    names, end_s = NAMES[:addresses], 24.0
    holes = [(8.0, 8.4), (14.0, 14.5)]
    faults = (fault(1, "kill", ("r2",), 8.0, None), fault(2, "cut", ("r3", "r4"), 14.0, 18.0))
    counts = MessageCounts(attempted=6017, accepted=6017, received=6017)
    return DrillReport(
        drill="lose-a-router",
        title="Traffic survives the loss of r2, and then of the link between r3 and r4",
        verdict=DrillVerdict.PASS,
        reasons=(),
        faults=faults,
        addresses=tuple(
            AddressReport(name, TYPES[i], counts, LatencyFigures(6017, 0.7, 3.1, 18.2), RATE, 2, 104.0, 1)
            for i, name in enumerate(names)
        ),
        results=tuple(
            result(each.id, name, 18.2 - 3 * i, replace(counts, attempted=3000, accepted=3000, received=3000))
            for each in faults
            for i, name in enumerate(names)
        ),
        checks=(
            Check("outage < 500ms", "kill r2, orders", "18.2 ms", True, "27x below"),
            Check("lost == 0", "cut r3-r4, invoices", "0", True),
            Check("duplicated <= 10", "kill r2, orders", "0", True, "10 to spare"),
            Check("p99 < 250ms", "kill r2, orders", "16.4 ms", True, "15x below"),
            Check("p99 < 50ms", "before, orders", "2.1 ms", True, "23x below"),
        ),
        examples=(),
        series={name: series(rng, end_s, holes, 0) for name in names},
        messages={name: dots(rng, dots_each, end_s, [(8.0, 8.018), (14.0, 14.012)], 0, 0) for name in names},
        phases={"baseline": (0.0, 8.0), "faults": (8.0, 18.0), "cooldown": (18.0, 24.0)},
        drawing=ring(4),
        seed=seed,
        started_at="2026-11-22T13:20:05Z",
        took_s=24.3,
        command="amqpmesh drill run lose-a-router --seed 7",
        host="Linux 6.1, 2 cores",
        versions={"amqpmesh": "0.1.0", "python": "3.11.2", "proton": "0.40.0"},
        digests={"drill": "3f" * 32, "topology": "a1" * 32},
        previous=None,
        log=("0.0 s  traffic began", "8.0 s  kill r2", "8.0 s  r1 noticed", "14.0 s  cut r3-r4", "24.0 s  done"),
    )


def failing() -> DrillReport:
    report = passing(addresses=3)
    rng = random.Random(11)
    holes = [(8.0, 9.8), (14.0, 16.4)]
    orders = MessageCounts(6017, 5893, 0, 12, 104, 8, 5882, 13, 2, 7)
    counts = {"orders": orders, "prices": replace(orders, attempted=6005, released=0, received=17_688)}
    results = (
        result("1", "orders", 812.0, MessageCounts(3000, 2900, 0, 12, 84, 4, 2887, 13, 0, 0), passed=False),
        *report.results[1:3],
        replace(result("2", "orders", 2404.0, orders, passed=False), recovery_ms=None),
        *report.results[4:],
    )
    return replace(
        report,
        verdict=DrillVerdict.FAIL,
        reasons=(
            "outage < 500ms: observed 2.4 s (cut r3-r4, orders)",
            "lost == 0: observed 13 (kill r2, orders)",
            "recovery < 5s: could not be measured",
        ),
        addresses=tuple(
            replace(each, counts=counts.get(each.address, each.counts), stalls=9, reconnects=4)
            for each in report.addresses
        ),
        results=results,
        checks=(
            Check(
                "outage < 500ms",
                "cut r3-r4, orders",
                "2.4 s",
                False,
                "4.8x above",
                "The loss was noticed at once, so the time went into finding another path. See that each router "
                "can `connect` to two others, and that there is a consumer at more than one router.",
            ),
            Check(
                "lost == 0", "kill r2, orders", "13", False, "13 too many", "Accepted means that a consumer settled it."
            ),
            Check("recovery < 5s", "cut r3-r4, orders", "not recovered", None),
            *report.checks[2:],
        ),
        examples=tuple(
            Example(
                "orders", f"s1/{4000 + i}", 8.0 + i / 100, fate, f"accepted at {8.1 + i / 100:.2f} s; never received"
            )
            for i, fate in enumerate(["lost"] * 13 + ["duplicated"] * 2 + ["reordered"] * 7 + ["unknown"] * 4)
        ),
        series={**report.series, "orders": series(rng, 24.0, holes, 14)},
        messages={**report.messages, "orders": dots(rng, 2000, 24.0, [(8.0, 8.8), (14.0, 16.4)], 104, 13)},
        previous=passing().summary(),
    )


def invalid() -> DrillReport:
    report = passing()
    first, second = report.faults
    toothless = replace(second, did_bite=False, evidence=("no byte was dropped between r3 and r4",), detection_ms=None)
    return replace(
        report,
        verdict=DrillVerdict.INVALID,
        reasons=("cut r3-r4 had no proven effect",),
        faults=(first, replace(toothless, detected_by=None)),
    )


def unknown() -> DrillReport:
    """Ended by Ctrl-C before the second fault."""
    report = passing()
    return replace(
        report,
        verdict=DrillVerdict.UNKNOWN,
        reasons=("it was stopped by Ctrl-C after 9.1 s", "recovery < 5s: could not be measured"),
        faults=report.faults[:1],
        results=report.results[:2],
        checks=(*report.checks[:2], Check("recovery < 5s", "kill r2, orders", "", None)),
        took_s=9.1,
        phases={"baseline": (0.0, 8.0), "faults": (8.0, 9.1)},
    )


def empty() -> DrillReport:
    """Nothing flowed, nothing was injected."""
    return replace(
        passing(),
        verdict=DrillVerdict.INVALID,
        reasons=("nothing flowed: no producer got credit in 10 s",),
        faults=(),
        addresses=(),
        results=(),
        checks=(),
        series={},
        messages={},
        phases={},
        drawing=Drawing((), (), ()),
        took_s=0.0,
        versions={},
        digests={},
        log=(),
    )


def silent() -> DrillReport:
    """Addresses without a single message."""
    report = passing()
    nothing = LatencyFigures()
    return replace(
        report,
        verdict=DrillVerdict.UNKNOWN,
        reasons=("nothing was received",),
        addresses=tuple(AddressReport(name, "queue", MessageCounts(), nothing, RATE, 0, 0.0, 0) for name in NAMES[:2]),
        results=tuple(
            FaultResult("1", name, None, None, None, None, nothing, nothing, nothing, MessageCounts(), 0, 0.0, False)
            for name in NAMES[:2]
        ),
        series={
            "orders": Series(0.1),
            "invoices": Series(0.1, (0,) * 240, (0,) * 240, (0,) * 240, *((None,) * 240,) * 3),
        },
        messages={"orders": (), "invoices": ((1.0, "released", None),)},
    )


def large(faults: int = 20, addresses: int = 5) -> DrillReport:
    """As much as anybody should have to scroll through."""
    report, rng, end_s = passing(), random.Random(3), 20.0 + 12 * faults
    made = tuple(
        fault(
            i + 1,
            KINDS[i % 5],
            (f"r{i % 12 + 1}",) if i % 5 != 1 else (f"r{i % 12 + 1}", f"r{(i + 1) % 12 + 1}"),
            at_s,
            at_s + 5,
        )
        for i, at_s in enumerate(10.0 + 12.0 * i for i in range(faults))
    )
    names = NAMES[:addresses]
    holes = [(each.at_s, each.at_s + 0.3) for each in made]
    counts = MessageCounts(130_000, 130_000, received=130_000)
    return replace(
        report,
        title="Twenty faults in a row, with five addresses",
        faults=made,
        addresses=tuple(
            AddressReport(name, TYPES[i], counts, LatencyFigures(130_000, 0.7, 3.1, 300.0), RATE, 2, 104.0, 1)
            for i, name in enumerate(names)
        ),
        results=tuple(
            result(each.id, name, rng.uniform(5, 300), replace(counts, attempted=6000, accepted=6000, received=6000))
            for each in made
            for name in names
        ),
        series={name: series(rng, end_s, holes, 0) for name in names},
        messages={name: dots(rng, 2000, end_s, holes, 0, 0) for name in names},
        phases={"baseline": (0.0, 10.0), "faults": (10.0, end_s - 10), "cooldown": (end_s - 10, end_s)},
        drawing=ring(12, (("b1", ("r1", "r2")), ("b2", tuple(f"r{i + 1}" for i in range(12))))),
        took_s=end_s,
        previous=report.summary(),
    )


HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "<!-- \u2028\u2029 ]]> ${1} {{1}}"
)


def hostile() -> DrillReport:
    """Every text is an attempt to get out of where it stands."""
    report = failing()
    name = f"a{HOSTILE}"
    return replace(
        report,
        drill=HOSTILE,
        title=HOSTILE,
        reasons=(HOSTILE,),
        faults=tuple(
            replace(each, label=HOSTILE, kind=HOSTILE, targets=(HOSTILE,), evidence=(HOSTILE,), detected_by=HOSTILE)
            for each in report.faults
        ),
        addresses=(replace(report.addresses[0], address=name, type=HOSTILE),),
        results=tuple(replace(each, address=name) for each in report.results[:1]),
        checks=(Check(HOSTILE, HOSTILE, HOSTILE, False, HOSTILE, HOSTILE),),
        examples=(Example(name, HOSTILE, 1.0, HOSTILE, HOSTILE),),
        series={name: report.series["orders"]},
        messages={name: (*report.messages["orders"], (3.0, HOSTILE, 1.0))},
        phases={HOSTILE: (0.0, 8.0)},
        drawing=Drawing((HOSTILE, "r2"), ((HOSTILE + "b", (HOSTILE,)),), ((HOSTILE, "r2", 1),)),
        started_at=HOSTILE,
        command=HOSTILE,
        host=HOSTILE,
        versions={HOSTILE: HOSTILE},
        digests={HOSTILE: HOSTILE},
        previous={"started_at": HOSTILE, "verdict": HOSTILE, "results": [{"fault": HOSTILE, "address": name}]},
        log=(HOSTILE,),
    )


ALL = {made.__name__: made for made in (passing, failing, invalid, unknown, empty, silent, large, hostile)}
