"""Checks the import contracts of setup.cfg over all code, including compiled code: `python tools/contracts.py [ROOT]`.

import-linter reads Python only. So import-linter is given a mirror of the packages in which each compiled module, with
the declarations of its `.pxd`, is replaced by a Python module with the same imports at the same lines; `cimport` counts
as `import`.

In the same mirror, no group of modules may import each other in a circle. Imports for types, and imports within
functions, count.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

import networkx
from Cython.Build.Dependencies import strip_string_literals

OF_CYTHON = {"cpython", "cython", "libc", "libcpp", "posix"}
"""Packages that come with the Cython compiler, and are not Python modules."""
KNOWN_CIRCLES = {
    # An endpoint makes its links, and a link refers to its endpoint.
    frozenset({"wire.endpoint", "wire.events", "wire.link"}),
    # These modules are parts of one state machine, that of a move.
    frozenset({"router.forwarding.given_back", "router.forwarding.move", "router.forwarding.retransmit"}),
}
_IMPORT = re.compile(
    r"(?:^|[;:])[ \t]*(?P<statement>(?:from[ \t]+[\w.]+[ \t]+)?c?import[ \t]+(?:\([^)]*\)|[^\n#;]+))", re.MULTILINE
)
_FIRST_NAME = re.compile(r"(?:from|import)\s+([\w]+)")


def imports_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line number, from 0, and the Python statement of each import in Cython code, including those in
    functions.
    """
    code, _ = strip_string_literals(source.replace("\\\n", " \n"))
    for found in _IMPORT.finditer(code):
        statement = re.sub(r"\bcimport\b", "import", re.sub(r"\s*(?:#[^\n]*)?\n\s*", " ", found["statement"])).strip()
        if _FIRST_NAME.match(statement)[1] not in OF_CYTHON:  # type: ignore[index]
            yield code.count("\n", 0, found.start("statement")), statement


def as_python(*sources: str) -> str:
    """Return a Python module with the imports of several sources; imports of the first source keep their lines."""
    lines: list[str] = []
    for source in sources:
        first = len(lines)
        lines += [""] * (source.count("\n") + 1)
        for line, statement in imports_of(source):
            lines[first + line] += f"; {statement}" if lines[first + line] else statement
    return "\n".join(lines) + "\n"


def write_mirror(root: Path, packages: list[str], mirror: Path) -> None:
    sources: dict[Path, list[Path]] = {}
    for suffix in (".py", ".pyx", ".pxd"):
        for package in packages:
            for path in (root / package).rglob(f"*{suffix}"):
                sources.setdefault(path.relative_to(root).with_suffix(".py"), []).append(path)
    for module, paths in sources.items():
        goal = mirror / module
        goal.parent.mkdir(parents=True, exist_ok=True)
        python = "".join(path.read_text() for path in paths if path.suffix == ".py")
        compiled = [path.read_text() for path in paths if path.suffix != ".py"]
        goal.write_text(python + as_python(*compiled))


def imported_by(source: str, modules: set[str]) -> Iterator[str]:
    """Yield those of ``modules`` that the Python module ``source`` imports."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names):
                yield from modules.intersection(each.name for each in names)
            case ast.ImportFrom(module=str(package), names=names):
                for each in names:
                    yield from modules.intersection([f"{package}.{each.name}"]) or modules.intersection([package])


def circles(mirror: Path) -> list[frozenset[str]]:
    """Return the groups of modules in which each module imports all others, directly or through others."""
    found = {
        ".".join(path.relative_to(mirror).with_suffix("").parts).removesuffix(".__init__"): path
        for path in mirror.rglob("*.py")
    }
    graph = networkx.DiGraph()
    for name, path in found.items():
        graph.add_edges_from((name, other) for other in imported_by(path.read_text(), set(found) - {name}))
    return [frozenset(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1]


def check_circles(mirror: Path) -> int:
    """Print each circle of imports that is not a known one, and each known one that is gone; return the exit code."""
    found = set(circles(mirror))
    said = [f"BROKEN: modules import each other in a circle: {_listed(group)}" for group in found - KNOWN_CIRCLES]
    said += [
        f"BROKEN: no circle now, take it out of KNOWN_CIRCLES: {_listed(group)}" for group in KNOWN_CIRCLES - found
    ]
    good = f"No module imports itself by way of others, except in {len(KNOWN_CIRCLES)} known circles."
    sys.stdout.write("\n".join(said or [good]) + "\n")
    return 1 if said else 0


def _listed(group: frozenset[str]) -> str:
    return ", ".join(sorted(group))


def check(root: Path) -> int:
    """Run `lint-imports` on the mirror, look for circles of imports, and return the exit code."""
    settings = ConfigParser()
    settings.read(root / "setup.cfg")
    packages = settings["importlinter"]["root_packages"].split()
    with tempfile.TemporaryDirectory(prefix="contracts-") as folder:
        mirror = Path(folder)
        write_mirror(root, packages, mirror)
        (mirror / "setup.cfg").write_text((root / "setup.cfg").read_text())
        command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        linted = subprocess.run(command, cwd=mirror, env=environment, check=False).returncode
        return linted or check_circles(mirror)


if __name__ == "__main__":
    sys.exit(check(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent))
