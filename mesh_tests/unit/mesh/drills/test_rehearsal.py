"""When is there nothing more to wait for?"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from addressing.kinds import AddressKind
from mesh.client.journal import Journal
from mesh.drills.model import Load
from mesh.drills.plan import DrillFlow
from mesh.drills.rehearsal import _is_over


@pytest.mark.parametrize(
    ("kind", "presettled", "is_over"),
    [
        (AddressKind.MULTICAST, False, True),
        (AddressKind.MULTICAST, True, False),
        (AddressKind.TOPIC, False, False),
    ],
)
def test_a_copy_that_is_missing_may_still_come_from_a_broker_or_where_nobody_answers(
    kind: AddressKind, presettled: bool, is_over: bool
):
    journal = Journal(2, False)
    message, number = journal.on_sent(journal.add_sender(), 0.0, 0.0)
    flow = DrillFlow(Load(address="a", presettled=presettled), kind, ("r1",), ("r2", "r3"))
    traffic = SimpleNamespace(flow=flow, journal=journal)
    assert not _is_over(traffic)  # type: ignore[arg-type]
    journal.on_outcome(message, "accepted")
    journal.on_arrival(0, 0, number, 0.1)
    assert _is_over(traffic) == is_over  # type: ignore[arg-type]
    journal.on_arrival(1, 0, number, 0.2)
    assert _is_over(traffic)  # type: ignore[arg-type]
