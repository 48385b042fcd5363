"""Who noticed first, by the logs of the nodes?"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from mesh.drills.detection import first_notice, read_notices

T0 = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def line(node: str, event: str, at_s: float, **fields: str) -> str:
    moment = datetime.fromtimestamp(T0 + at_s, UTC).isoformat(timespec="milliseconds")
    return json.dumps({"ts": moment, "level": "warning", "node": node, "event": event, **fields})


def logs(folder: Path) -> list[Path]:
    r1 = [line("r1", "neighbor_down", 0.5, router="r2"), line("r1", "neighbor_up", 1, router="r2"), "Traceback (most"]
    r1.append(line("r1", "neighbor_expired", 3.5, router="r2", silent_s="3"))
    r3 = [line("r3", "neighbor_down", 3.2, router="r2"), line("r3", "broker_down", 4, broker="b1"), '{"half']
    for name, lines in (("r1", r1), ("r3", r3)):
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    return [folder / "r1.jsonl", folder / "r3.jsonl", folder / "none.jsonl"]


def test_it_is_the_first_line_of_any_node_after_the_fault(tmp_path: Path):
    notices = read_notices(logs(tmp_path))
    notice = first_notice(notices, ["r2"], T0 + 3, T0 + 10)
    assert str(notice) == "r3: neighbor_down r2"
    assert str(first_notice(notices, ["b1"], T0 + 3, T0 + 10)) == "r3: broker_down b1"


def test_what_was_before_or_long_after_does_not_count(tmp_path: Path):
    notices = read_notices(logs(tmp_path))
    assert first_notice(notices, ["r2"], T0 + 1, T0 + 3) is None
    assert first_notice(notices, ["r9"], T0, T0 + 10) is None


def test_the_loss_of_a_link_is_noticed_by_one_of_its_ends(tmp_path: Path):
    notices = read_notices(logs(tmp_path))
    notice = first_notice(notices, ["r1", "r2"], T0 + 3, T0 + 10)
    assert str(notice) == "r1: neighbor_expired r2"
