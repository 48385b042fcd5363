"""Does what the scenarios tell still come true? With REWRITE=1 they are written anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mesh_tests.sim.scenario import blocks, play

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_comes_as_the_scenario_tells(tmp_path: Path, file: Path) -> None:
    played = play(file.read_text(), tmp_path)
    if os.environ.get("REWRITE"):
        file.write_text(played)
    assert played == file.read_text()


def test_there_are_scenarios_and_what_they_expect_is_compared(tmp_path: Path) -> None:
    assert len(FILES) >= 8
    text = "topology line_3\n----\nsomething else\n"
    assert list(blocks(text)) == [(["topology line_3"], ["something else"])]
    assert play(text, tmp_path) == "topology line_3\n----\nr1 - r2 cost=1, r2 - r3 cost=1\n"
