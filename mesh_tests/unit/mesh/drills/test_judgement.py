"""From what was seen to a verdict: what makes a drill pass, fail, say nothing, or remain open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from addressing.kinds import AddressKind
from mesh.client.journal import Journal
from mesh.drills.detection import Notice
from mesh.drills.faults.injection import Injection
from mesh.drills.judgement import Circumstances, baseline_failure, make_report
from mesh.drills.model import Command, Drill, Fault, Kill, Latency, Load
from mesh.drills.plan import DrillFlow, DrillPlan, PlannedFault
from mesh.drills.rehearsal import FaultRun, RehearsalRecord
from mesh.drills.report import Drawing, DrillReport, DrillVerdict

RATE = 100.0
BEGAN, FAULT_AT, ENDED = 1000.0, 1005.0, 1015.0
WALL_S = 1_700_000_000.0
MADE = Circumstances(1, "", 1.0, "", "", {}, {}, Drawing((), (), ()))


class Seen(Injection):
    async def apply(self) -> None: ...

    async def heal(self) -> None: ...


class FakeTraffic:
    """What a report needs of traffic: 100 messages a second, none of which arrives in ``silent``."""

    def __init__(self, silent: tuple[float, float] = (0.0, 0.0), end: float = ENDED) -> None:
        load = Load(address="orders")
        self.flow = DrillFlow(load, AddressKind.ANYCAST, ("r1",), ("r3",))
        self.journal = Journal(1, True)
        self.journal.add_sender()
        for n in range(int((end - BEGAN) * RATE)):
            due = BEGAN + n / RATE
            message, _ = self.journal.on_sent(0, due, due)
            self.journal.on_outcome(message, "accepted")
            self.journal.on_arrival(
                0, 0, n, max(due, silent[1]) + 0.001 if silent[0] <= due < silent[1] else due + 0.001
            )


def record_of(traffic: FakeTraffic, *, fault: Fault | None = None, did_bite: bool = True) -> RehearsalRecord:
    planned = PlannedFault("1", fault or Kill(router="r2"), 0.0, None, 1.0)
    injection = Seen()
    injection.did_bite = did_bite
    plan = DrillPlan(5.0, (planned,), 1.0, 9.0, (traffic.flow,))
    record = RehearsalRecord(plan, [traffic], BEGAN, WALL_S, FAULT_AT + 1, ENDED)  # type: ignore[list-item]
    record.injected = [FaultRun(planned, injection, FAULT_AT, WALL_S + 5, FAULT_AT + 1)]
    return record


def drill(*expect: str, steady: tuple[str, ...] = (), **more: Any) -> Drill:
    state = {"load": {"address": "orders"}, "expect": list(steady), **more}
    return Drill.model_validate({"drill": "d", "steady_state": state, "expect": list(expect)})


def report(judged: Drill, record: RehearsalRecord, notices: tuple[Notice, ...] = ()) -> DrillReport:
    return make_report(judged, record, notices, MADE)


def test_a_drill_in_which_everything_holds_passes():
    seen = report(drill("lost == 0", "outage < 100ms", steady=("p(99) < 50ms",)), record_of(FakeTraffic()))
    assert (seen.verdict, seen.reasons) == (DrillVerdict.PASS, ())
    assert [check.passed for check in seen.checks] == [True] * 4
    assert seen.results[0].passed


def test_what_does_not_hold_fails_it_and_is_the_reason():
    seen = report(drill("outage < 100ms"), record_of(FakeTraffic(silent=(FAULT_AT, FAULT_AT + 0.5))))
    assert seen.verdict is DrillVerdict.FAIL
    assert seen.reasons == ("outage < 100ms: observed 501 ms (kill r2, orders)",)
    assert seen.checks[0].advice
    assert not seen.results[0].passed


def test_a_fault_that_did_not_bite_makes_it_invalid():
    seen = report(drill("lost == 0"), record_of(FakeTraffic(), did_bite=False))
    assert (seen.verdict, seen.reasons) == (DrillVerdict.INVALID, ("kill r2 had no proven effect",))


def test_a_failure_weighs_more_than_a_fault_that_did_not_bite():
    seen = report(drill("outage < 1ms"), record_of(FakeTraffic(), did_bite=False))
    assert seen.verdict is DrillVerdict.FAIL
    assert len(seen.reasons) == 2


def test_where_nothing_flowed_before_the_fault_nothing_is_proven():
    seen = report(drill("lost == 0"), record_of(FakeTraffic(silent=(BEGAN, FAULT_AT + 1))))
    assert seen.verdict is DrillVerdict.INVALID
    assert seen.reasons[0] == "no data: no message arrived on orders before the first fault"


def test_where_the_steady_state_did_not_hold_before_nothing_is_proven():
    seen = report(drill("lost == 0", steady=("p(99) < 0.1ms",)), record_of(FakeTraffic()))
    assert seen.verdict is DrillVerdict.INVALID
    assert "not steady before the first fault" in seen.reasons[0]


def test_what_a_drill_was_ended_for_before_it_began_is_told_once():
    unsteady = drill("lost == 0", steady=("p(99) < 0.1ms",), abort_on_fail=True)
    record = record_of(FakeTraffic())
    record.ended_early = baseline_failure(unsteady, record)
    assert [reason for reason in report(unsteady, record).reasons if "not steady" in reason] == [record.ended_early]


def test_what_could_not_be_measured_leaves_it_open():
    fault = Latency.model_validate({"link": ["r1", "r2"], "latency": "100ms"})
    seen = report(drill("detection < 1s"), record_of(FakeTraffic(), fault=fault))
    assert (seen.verdict, seen.reasons) == (DrillVerdict.UNKNOWN, ("detection < 1s: could not be measured",))
    allowed = drill("detection < 1s", allow_no_data=True)
    assert report(allowed, record_of(FakeTraffic(), fault=fault)).verdict is DrillVerdict.PASS


def test_a_drill_that_was_interrupted_remains_open():
    record = record_of(FakeTraffic())
    record.was_interrupted = True
    assert report(drill("lost == 0"), record).reasons == ("it was interrupted",)


def test_what_never_recovers_fails():
    seen = report(drill("recovery < 1m"), record_of(FakeTraffic(end=FAULT_AT + 0.1)))
    assert seen.verdict is DrillVerdict.FAIL
    assert seen.checks[0].observed == "never"


def test_detection_is_from_the_fault_to_the_first_notice_of_another_node():
    notice = Notice("r1", "neighbor_down", "r2", WALL_S + 5.012)
    seen = report(drill("detection < 20ms"), record_of(FakeTraffic()), (notice,))
    assert (seen.faults[0].detection_ms, seen.faults[0].detected_by) == (pytest.approx(12.0, abs=0.01), "r1")
    assert seen.verdict is DrillVerdict.PASS


@pytest.mark.parametrize(
    ("told", "name"),
    [
        (lambda journal: journal.on_outcome(700, "modified"), "modified"),
        (lambda journal: journal.on_arrival(0, 0, 700, ENDED), "duplicated"),
    ],
)
def test_counts_are_in_the_result_of_the_fault_they_follow(told: Callable[[Journal], None], name: str):
    traffic = FakeTraffic()
    told(traffic.journal)
    seen = report(drill(f"{name} == 0"), record_of(traffic))
    assert seen.verdict is DrillVerdict.FAIL
    assert getattr(seen.results[0].counts, name) == 1


def test_nothing_is_broken_where_nothing_flows_or_the_steady_state_does_not_hold():
    silent = record_of(FakeTraffic(silent=(BEGAN, ENDED)))
    assert "the drill has no traffic to judge" in baseline_failure(drill(), silent)
    busy = record_of(FakeTraffic())
    busy.injected = []
    assert baseline_failure(drill(steady=("p(99) < 0.1ms",)), busy) == ""
    assert "not steady" in baseline_failure(drill(steady=("p(99) < 0.1ms",), abort_on_fail=True), busy)


def test_a_message_that_is_lost_during_the_fault_is_not_what_the_steady_state_allows():
    traffic = FakeTraffic()
    del traffic.journal.arrivals[int(6 * RATE)]
    seen = report(drill(steady=("lost == 0",)), record_of(traffic))
    assert seen.reasons == ("lost == 0: observed 1 (throughout, orders)",)
    assert seen.verdict is DrillVerdict.FAIL


def test_what_was_under_way_when_the_fault_came_is_not_held_against_the_baseline():
    traffic = FakeTraffic()
    del traffic.journal.arrivals[int(5 * RATE) - 2]
    assert report(drill("lost == 0", steady=("lost == 0",)), record_of(traffic)).verdict is DrillVerdict.FAIL


def test_counts_of_no_messages_are_no_data():
    record = record_of(FakeTraffic())
    record.began_at = FAULT_AT
    assert report(drill(steady=("lost == 0",)), record).verdict is DrillVerdict.UNKNOWN


def test_a_fault_that_could_not_be_healed_fails_the_drill():
    record = record_of(FakeTraffic())
    record.injected[0].injection.stays("r2 did not come back within 60 s")
    seen = report(drill("lost == 0"), record)
    assert (seen.verdict, seen.reasons) == (DrillVerdict.FAIL, ("kill r2 could not be healed",))
    assert not seen.results[0].passed
    assert seen.faults[0].healed_s is None


def test_no_result_passes_of_a_fault_that_did_not_bite():
    assert not report(drill("lost == 0"), record_of(FakeTraffic(), did_bite=False)).results[0].passed


def test_a_drill_that_was_cut_short_does_not_fail_for_messages_under_way():
    traffic = FakeTraffic()
    traffic.journal.arrivals.pop()
    record = record_of(traffic)
    record.was_interrupted = True
    seen = report(drill("lost == 0"), record)
    assert (seen.verdict, seen.reasons[0]) == (DrillVerdict.UNKNOWN, "it was interrupted")


def test_a_drill_that_expects_nothing_does_not_pass():
    assert report(drill(), record_of(FakeTraffic())).verdict is DrillVerdict.UNKNOWN


def test_an_outage_that_goes_on_through_the_next_fault_is_measured_in_full():
    record = record_of(FakeTraffic(silent=(FAULT_AT, FAULT_AT + 4)))
    later = FaultRun(
        PlannedFault("2", Kill(router="r4"), 2.0, None, 1.0), Seen(), FAULT_AT + 2, WALL_S + 7, FAULT_AT + 3
    )
    later.injection.did_bite = True
    record.injected.append(later)
    seen = report(drill("outage < 3s", "recovery < 6s"), record)
    assert [result.outage_ms for result in seen.results] == [pytest.approx(4001, abs=20), pytest.approx(2001, abs=20)]
    assert [result.recovery_ms for result in seen.results] == [
        pytest.approx(4000, abs=200),
        pytest.approx(2000, abs=200),
    ]
    assert seen.reasons == ("outage < 3s: observed 4001 ms (kill r2, orders)",)


@pytest.mark.parametrize(("fails_before", "did_bite"), [(False, True), (True, False)])
def test_a_command_bit_where_traffic_fails_as_it_had_not_before(fails_before: bool, did_bite: bool):
    traffic = FakeTraffic()
    traffic.journal.on_outcome(700, "released")
    if fails_before:
        traffic.journal.on_outcome(200, "released")
    seen = report(drill("accepted > 0"), record_of(traffic, fault=Command(run="true"), did_bite=False))
    assert seen.faults[0].did_bite is did_bite


@pytest.mark.parametrize("expectation", ["rate > 1/s", "stalls == 0", "reconnects == 0", "outage < 1s", "max < 1m"])
def test_what_never_recovers_has_no_steady_state_after_it_and_the_others_have_theirs(expectation: str):
    record = record_of(FakeTraffic())
    record.traffics = [*record.traffics, FakeTraffic(end=FAULT_AT)]  # type: ignore[list-item]
    seen = report(drill(steady=(expectation,)), record)
    assert (seen.checks[-1].observed, seen.checks[-1].passed) == ("no data", None)
    record.traffics = record.traffics[:1]
    assert report(drill(steady=(expectation,)), record).verdict is DrillVerdict.PASS


def test_a_load_that_was_not_reached_proves_nothing_about_it():
    traffic = FakeTraffic()
    asked = traffic.flow.load.model_copy(update={"rate": 2 * RATE})
    traffic.flow = DrillFlow(asked, AddressKind.ANYCAST, ("r1",), ("r3",))
    seen = report(drill("lost == 0"), record_of(traffic))
    assert seen.verdict is DrillVerdict.INVALID
    assert seen.reasons == ("the load was not reached before the first fault: 100/s of 200/s on orders",)


def test_without_a_baseline_nobody_knows_what_it_should_recover_to():
    record = record_of(FakeTraffic())
    record.began_at = FAULT_AT
    seen = report(drill("recovery < 5s"), record)
    assert seen.verdict is DrillVerdict.UNKNOWN
    assert seen.results[0].counts == seen.addresses[0].counts


def test_what_is_told_a_moment_before_the_next_fault_by_the_clock_of_the_logs_is_of_that():
    record = record_of(FakeTraffic())
    later = FaultRun(
        PlannedFault("2", Kill(router="r2"), 2.0, None, 1.0), Seen(), FAULT_AT + 2, WALL_S + 7, FAULT_AT + 3
    )
    record.injected.append(later)
    notice = Notice("r1", "neighbor_down", "r2", WALL_S + 6.999)
    seen = report(drill("lost == 0"), record, (notice,))
    assert [fault.detection_ms for fault in seen.faults] == [None, 0.0]
