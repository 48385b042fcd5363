"""What spark-submit needs of amqpmesh: the modules of a report as one zip, and the file that it starts.

Of the same modules the zip is the same, byte by byte.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import addressing
import linklogs

ARCHIVE = "linklogs.zip"
JOB = "amqpmesh_report.py"
MODULES = (
    (addressing, ("__init__.py", "address.py", "link_log.py")),
    (linklogs, ("*.py", "replay/*.py")),
)


@dataclass(frozen=True, slots=True)
class Packed:
    archive: Path
    """For --py-files."""
    job: Path
    """What to submit."""


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
    """The name of each in the zip, and where it is."""
    for package, patterns in MODULES:
        root = Path(package.__path__[0])
        for path in sorted(found for pattern in patterns for found in root.glob(pattern)):
            yield f"{package.__name__}/{path.relative_to(root)}", path
