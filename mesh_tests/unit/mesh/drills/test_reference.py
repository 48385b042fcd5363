"""Does the reference of drill files tell of everything that may stand in one?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mesh.drills import model, thresholds
from mesh.drills.report import DrillVerdict

REFERENCE = Path("docs/reference/drills.md").read_text()
KEYS = {
    name if field.alias is None else field.alias
    for part in (model.Drill, model.SteadyState, model.Load, model.Random, *model.FAULTS.values())
    for name, field in part.model_fields.items()
}


@pytest.mark.parametrize(
    "word",
    sorted(
        {*KEYS, *model.FAULTS, *model.SYNONYMS, *thresholds.METRICS, *thresholds.COMPARISONS, *map(str, DrillVerdict)}
    ),
)
def test_it_is_in_the_reference(word: str):
    assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", REFERENCE)
