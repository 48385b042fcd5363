"""Who sends what cannot be kept, and leaves in the same bytes, leaves nothing behind but a line in the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh_tests.fuzz.dialogues import Dialogue
from mesh_tests.fuzz.simulated import FuzzedMesh
from mesh_tests.unit.wire.test_gate import BEGINNING, HEADER, LEAVING, OPENING, attach, said
from router.events import LinkEnded
from wire.codec.frames import CompositeValue
from wire.codec.table import BY_CODE


@pytest.mark.parametrize("target", ["router", "edge"])
@pytest.mark.parametrize("address", ["work.a", "prices.a", "shards.a"])
@pytest.mark.parametrize("leaving", ["detach", "close of the link", "end"])
def test_a_fault_is_told_though_its_sender_left(tmp_path: Path, leaving: str, address: str, target: str) -> None:
    mesh = FuzzedMesh(tmp_path)
    attaching = attach(0, "faulty", target=CompositeValue(BY_CODE[0x29], {"address": address}))
    faulty = said(0x14, handle=0, delivery_id=0, delivery_tag=b"t", message_format=7)
    chunks = (HEADER, OPENING, BEGINNING + attaching, faulty + LEAVING[leaving])
    mesh.speak(target, Dialogue(0, chunks, frozenset({1, 2, 3})))
    told = [event for _, _, event in mesh.log if isinstance(event, LinkEnded) and event.link == "faulty"]
    assert [event.description for event in told] == ["transfer.message-format: expected 0, got 7"]
    assert mesh.left_behind() == []
    mesh.check_bystanders()
    mesh.close()
