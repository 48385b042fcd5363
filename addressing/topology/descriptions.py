"""Descriptions of the keys of a topology file: the docstrings under the fields of the model, read on demand.

Pydantic could collect these docstrings as it makes the model, but that doubles the time to import the model in a node.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from addressing.topology import broker_settings, link_log_settings, log_settings, metric_settings, watch_settings
from addressing.topology import model as topology


def describe(part: str, key: str) -> str:
    """Return the docstring of the field ``key`` of the model class named ``part``."""
    return _descriptions()[part, key]


def meanings_of(part: type) -> dict[str, str]:
    """Return the docstrings under the fields of a class, or under the members of an enum, by name, from its source."""
    (tree,) = ast.parse(inspect.getsource(part)).body
    assert isinstance(tree, ast.ClassDef)
    return dict(_sentences(tree))


@cache
def _descriptions() -> dict[tuple[str, str], str]:
    return {
        (part.name, name): sentence
        for module in (topology, broker_settings, link_log_settings, log_settings, metric_settings, watch_settings)
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
