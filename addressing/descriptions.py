"""What does this key of the topology mean? The sentences under the fields of the model, read when somebody asks.

Pydantic could collect them as the model is made, but that doubles the time to import it, in every node that starts.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from addressing import broker_settings, link_log_settings, topology


def describe(part: str, key: str) -> str:
    """Return the sentence about the field ``key`` of the model class ``part``."""
    return _descriptions()[part, key]


def meanings_of(part: type) -> dict[str, str]:
    """The sentence under each field, or member, of a class that has one."""
    (tree,) = ast.parse(inspect.getsource(part)).body
    assert isinstance(tree, ast.ClassDef)
    return dict(_sentences(tree))


@cache
def _descriptions() -> dict[tuple[str, str], str]:
    return {
        (part.name, name): sentence
        for module in (topology, broker_settings, link_log_settings)
        for part in ast.parse(inspect.getsource(module)).body
        if isinstance(part, ast.ClassDef)
        for name, sentence in _sentences(part)
    }


def _sentences(part: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in pairwise(part.body):
        target = field.targets[0] if isinstance(field, ast.Assign) else getattr(field, "target", None)
        value = text.value if isinstance(text, ast.Expr) else None
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield target.id, value.value
