"""Check the import contracts of setup.cfg over all code, compiled code too: `python tools/contracts.py [ROOT]`.

import-linter reads Python only. So import-linter is given a copy of the packages in which each compiled module, with
the declarations of its `.pxd`, is a Python module of the same imports at the same lines: `cimport` counts as `import`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

from Cython.Build.Dependencies import strip_string_literals

OF_CYTHON = {"cpython", "cython", "libc", "libcpp", "posix"}
"""Packages that come with the Cython compiler, and are no Python modules."""
_IMPORT = re.compile(
    r"(?:^|[;:])[ \t]*(?P<statement>(?:from[ \t]+[\w.]+[ \t]+)?c?import[ \t]+(?:\([^)]*\)|[^\n#;]+))", re.MULTILINE
)
_FIRST_NAME = re.compile(r"(?:from|import)\s+([\w]+)")


def imports_of(source: str) -> Iterator[tuple[int, str]]:
    """Line number, from 0 on, and Python statement of each import in Cython code, also within functions."""
    code, _ = strip_string_literals(source.replace("\\\n", " \n"))
    for found in _IMPORT.finditer(code):
        statement = re.sub(r"\bcimport\b", "import", re.sub(r"\s*(?:#[^\n]*)?\n\s*", " ", found["statement"])).strip()
        if _FIRST_NAME.match(statement)[1] not in OF_CYTHON:  # type: ignore[index]
            yield code.count("\n", 0, found.start("statement")), statement


def as_python(*sources: str) -> str:
    """A module with the imports of several sources. The imports of the first source keep their lines."""
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


def check(root: Path) -> int:
    """Run `lint-imports` on the mirror, and return the exit code."""
    settings = ConfigParser()
    settings.read(root / "setup.cfg")
    packages = settings["importlinter"]["root_packages"].split()
    with tempfile.TemporaryDirectory(prefix="contracts-") as folder:
        mirror = Path(folder)
        write_mirror(root, packages, mirror)
        (mirror / "setup.cfg").write_text((root / "setup.cfg").read_text())
        command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(command, cwd=mirror, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(check(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent))
