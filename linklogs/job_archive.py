"""Packs the files for spark-submit: the modules of a report as one zip, and the script to start.

The same modules make the same zip, byte by byte.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import addressing
import linklogs
import recording

ARCHIVE = "linklogs.zip"
JOB = "amqpmesh_report.py"
MODULES = (
    (addressing, ("__init__.py", "address.py")),
    (recording, ("__init__.py", "columns.py")),
    (linklogs, ("*.py", "replay/*.py")),
)


@dataclass(frozen=True, slots=True)
class Packed:
    archive: Path
    """For --py-files."""
    job: Path
    """The script to submit."""


def pack(directory: Path) -> Packed:
    """Make ``directory`` if it is missing, and replace both files in it. Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    packed = Packed(directory / ARCHIVE, directory / JOB)
    with ZipFile(packed.archive, "w", ZIP_DEFLATED) as archive:
        for name, path in _modules():
            # Without a date, which would differ.
            archive.writestr(ZipInfo(name), path.read_bytes(), ZIP_DEFLATED)
    shutil.copyfile(Path(linklogs.__path__[0]) / "job.py", packed.job)
    return packed


def _modules() -> Iterator[tuple[str, Path]]:
    """Each module's name in the zip, and its path."""
    for package, patterns in MODULES:
        root = Path(package.__path__[0])
        for path in sorted(found for pattern in patterns for found in root.glob(pattern)):
            yield f"{package.__name__}/{path.relative_to(root)}", path
