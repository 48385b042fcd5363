"""Packs the Spark job of reports for spark-submit: the modules in a zip, and a script for spark-submit to start.

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
    """The two files of the job that `pack` wrote."""

    archive: Path
    """The zip with all modules, for --py-files of spark-submit."""
    job: Path
    """The script for spark-submit to start."""


def pack(directory: Path) -> Packed:
    """Write the zip and the script of the Spark job into ``directory``, which is made if missing.

    Files of the same two names are replaced. Raises OSError.
    """
    directory.mkdir(parents=True, exist_ok=True)
    packed = Packed(directory / ARCHIVE, directory / JOB)
    with ZipFile(packed.archive, "w", ZIP_DEFLATED) as archive:
        for name, path in _modules():
            # The modules get no date in the zip: with dates, two zips of the same modules would differ.
            archive.writestr(ZipInfo(name), path.read_bytes(), ZIP_DEFLATED)
    shutil.copyfile(Path(linklogs.__path__[0]) / "job.py", packed.job)
    return packed


def _modules() -> Iterator[tuple[str, Path]]:
    """Yield (name in the zip, path) of each module that the job needs."""
    for package, patterns in MODULES:
        root = Path(package.__path__[0])
        for path in sorted(found for pattern in patterns for found in root.glob(pattern)):
            yield f"{package.__name__}/{path.relative_to(root)}", path
