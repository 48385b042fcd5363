"""The link logs know nodes by their records only, and a worker of Spark has no more of the project than is packed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import linklogs

ADDRESSING = "addressing"
KNOWN = {ADDRESSING, *(f"{ADDRESSING}.{name}" for name in ("address", "link_log", "link_log_ring"))}
"""The package itself has nothing in it."""


def imported(path: Path) -> Iterator[str]:
    for each in ast.walk(ast.parse(path.read_text())):
        if isinstance(each, ast.Import):
            yield from (name.name for name in each.names)
        elif isinstance(each, ast.ImportFrom) and each.module == ADDRESSING:
            yield from (f"{ADDRESSING}.{name.name}" for name in each.names)
        elif isinstance(each, ast.ImportFrom) and each.module is not None:
            yield each.module


def test_of_addresses_and_topologies_only_the_schema_and_whose_an_address_is_are_imported() -> None:
    assert linklogs.__file__
    files = Path(linklogs.__file__).parent.rglob("*.py")
    found = {name for path in files for name in imported(path) if name.split(".")[0] == ADDRESSING}
    assert found == KNOWN
