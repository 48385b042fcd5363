"""What does this key of the topology mean? The sentences under the fields of the model, read when somebody asks.

Pydantic could collect them as the model is made, but that doubles the time to import it, in every node that starts.
"""

from __future__ import annotations

import ast
import inspect
from functools import cache

from addressing import topology


def describe(part: str, key: str) -> str:
    """Return the sentence about the field ``key`` of the model class ``part``."""
    return _descriptions()[part, key]


@cache
def _descriptions() -> dict[tuple[str, str], str]:
    tree = ast.parse(inspect.getsource(topology))
    return {
        (part.name, field.target.id): text.value.value
        for part in tree.body
        if isinstance(part, ast.ClassDef)
        for field, text in zip(part.body, part.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }
