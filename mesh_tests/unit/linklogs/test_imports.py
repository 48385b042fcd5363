"""The link logs know nodes by their records only, and a worker of Spark has no more of the project than is packed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import linklogs

KNOWN = {
    "addressing": {"address", "records"},
    "recording": {"columns", "ring_format", "ring_pages"},
}
"""Of each package, the modules that linklogs may import; the packages themselves have nothing in them."""


def imported(path: Path) -> Iterator[str]:
    for each in ast.walk(ast.parse(path.read_text())):
        if isinstance(each, ast.Import):
            yield from (name.name for name in each.names)
        elif isinstance(each, ast.ImportFrom) and each.module in KNOWN:
            yield from (f"{each.module}.{name.name}" for name in each.names)
        elif isinstance(each, ast.ImportFrom) and each.module is not None:
            yield each.module


@pytest.mark.parametrize("package", KNOWN)
def test_of_other_packages_linklogs_imports_only_what_a_record_is_and_whose_an_address_is(package: str) -> None:
    assert linklogs.__file__
    files = Path(linklogs.__file__).parent.rglob("*.py")
    names = {name for path in files for name in imported(path) if name.startswith(f"{package}.")}
    assert names == {f"{package}.{module}" for module in KNOWN[package]}
