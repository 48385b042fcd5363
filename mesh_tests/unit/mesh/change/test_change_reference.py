"""docs/reference/changes.md is made from the table of change classes: `REWRITE=1 pytest` on this file makes it anew."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from pathlib import Path

from addressing.topology.descriptions import meanings_of
from addressing.topology.shapes import PARTS
from mesh.change.change_class import ChangeClass
from mesh.change.key_classes import KEY_CLASSES

REFERENCE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "changes.md"
HEAD = """\
# Classes of changes

Made from `mesh/change/key_classes.py`; a test compares. `amqpmesh plan` shows the steps from the topology that `up`
started to an edited file. Each step has a class. The class at a key is the least that a change of the key takes; the
class of a step belongs to its effect, and may be larger. Today `amqpmesh down` and `amqpmesh up` carry a change out;
the last column is how each kind of change will be carried out while the mesh runs.

| class | meaning |
|---|---|
"""


def reference() -> str:
    return HEAD + "\n".join((*meanings(), *tables())) + "\n"


def meanings() -> Iterator[str]:
    for name, meaning in meanings_of(ChangeClass).items():
        yield f"| {name} | {meaning} |"


def tables() -> Iterator[str]:
    for path, part in PARTS.items():
        title = ": ".join(("NAME" if step == "*" else str(step)) for step in path)
        yield from ("", f"## `{title}:`" if title else "## The file", "")
        yield from ("| key | class | clients notice | how carried out |", "|---|---|---|---|")
        for key in part.model_fields:
            row = KEY_CLASSES[part.__name__, key]
            yield f"| `{key}` | {row.change_class} | {row.notice} | {row.execution} |"


def test_the_reference_of_changes_is_current() -> None:
    if os.environ.get("REWRITE"):
        REFERENCE.write_text(reference())
    assert REFERENCE.read_text() == reference(), "make it anew: REWRITE=1 pytest on this file"


def test_every_class_has_a_meaning() -> None:
    assert set(meanings_of(ChangeClass)) == {each.name for each in ChangeClass}
    assert inspect.getdoc(ChangeClass)
