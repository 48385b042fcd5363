"""Does each soak lead lives that nobody has led, and does its proof keep those of before?"""

import xml.etree.ElementTree as ElementTree
from itertools import pairwise, product
from pathlib import Path

import pytest

from mesh_tests import soak
from mesh_tests.lives import LIVES, Life
from mesh_tests.soak import Soak, Tally, add, first_seed, tally_of, with_row

LIFE = Life("sim/test_walk.py", "clients come and go", 100, batch_s=10)
OLD = "# Soak\n\nOf before.\n\n| what happens | revision |\n|---|---|\n| a | b |\n"


def new_tally(revision: str = "abc1234", date: str = "2026-11-25", **more: int) -> Tally:
    return Tally("code", revision, date, first_seed(LIFE, revision, date), **more)


def test_no_two_soaks_share_a_seed() -> None:
    made = product(LIVES, ("abc1234", "abc1235"), ("2026-11-25", "2026-11-26"))
    spans = sorted((first_seed(life, revision, date), life.seeds) for life, revision, date in made)
    assert all(first + count <= after for (first, count), (after, _) in pairwise(spans))


def test_every_life_is_a_test_that_takes_its_seeds_from_the_soak() -> None:
    for life in LIVES:
        file = Path(soak.ROOT, "mesh_tests", life.test.partition("::")[0])
        assert "seeds" in file.read_text(), life.test
        assert all(Path(soak.ROOT, part).exists() for part in life.code), life.test


def test_a_soak_goes_on_while_its_code_stays_and_begins_anew_with_other_code_or_on_another_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(soak, "git", lambda *_: "code")
    half = vars(new_tally(seeds=50)).copy()
    assert tally_of(LIFE, half, "later12", "2026-11-30") == Tally(**half)
    assert tally_of(LIFE, {**half, "code": "other"}, "later12", "2026-11-30").first != half["first"]
    whole = {**half, "seeds": 100}
    assert tally_of(LIFE, whole, "abc1234", "2026-11-25").seeds == 100
    again = tally_of(LIFE, whole, "abc1234", "2026-11-26")
    assert (again.seeds, again.date) == (0, "2026-11-26")
    assert again.first != half["first"]


def test_a_proof_keeps_every_row_of_another_soak_and_has_one_of_this_one() -> None:
    proof = with_row(OLD, LIFE, new_tally(seeds=10, lives=10))
    assert proof.startswith(OLD.rstrip())
    proof = with_row(proof, LIFE, new_tally("def5678", seeds=20, lives=20))
    tally = new_tally(seeds=30, lives=30)
    tally.failed, tally.counts = ["test_x"], {"crashes": 1200}
    proof = with_row(proof, LIFE, tally)
    first, other = tally.first, first_seed(LIFE, "def5678", "2026-11-25")
    assert proof.split("\n")[-3:] == [
        f"| 2026-11-25 | def5678 | clients come and go | {other} to {other + 19} | 20 | 0 | |",
        f"| 2026-11-25 | abc1234 | clients come and go | {first} to {first + 29} | 30 | 1 | crashes 1,200; `test_x` |",
        "",
    ]
    assert proof.count("| date | revision |") == 1


def test_what_pytest_reports_is_added_up() -> None:
    tally = new_tally(seeds=5, lives=5)
    add(
        tally,
        2,
        ElementTree.fromstring(
            '<testsuite><testcase name="a"><properties><property name="crashes" value="3"/></properties></testcase>'
            '<testcase name="b"><failure/></testcase></testsuite>'
        ),
    )
    assert (tally.seeds, tally.lives, tally.failed, tally.counts) == (7, 7, ["b"], {"crashes": 3})


def test_no_batch_begins_that_would_end_too_late() -> None:
    long = Life("sim/test_vanishing.py", "long", 10, batch_s=1000)
    begun = Soak({life.test: new_tally() for life in (LIFE, long)}, (LIFE, long))
    assert begun.next_life(2000.0) in (LIFE, long)
    assert begun.next_life(20.0) == LIFE
    assert begun.next_life(5.0) is None
