"""A temporary folder that is removed at the end of a command. If the command is killed, the next command that makes a
folder with the same prefix removes the old folder.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mesh.deploy.pid_file import PidFile
from mesh.deploy.running_processes import find_running

OWNER = "owner.pid"


@contextmanager
def scratch_folder(prefix: str) -> Iterator[Path]:
    clear_left(prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    owner = PidFile(folder / OWNER)
    try:
        owner.acquire()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        owner.release()


def clear_left(prefix: str) -> None:
    """Remove the temporary folders with this prefix that killed commands of this user left behind."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if is_left(folder):
            shutil.rmtree(folder, ignore_errors=True)


def is_left(folder: Path) -> bool:
    """Tell whether ``folder`` is this user's, its command was killed, and no mesh inside the folder runs any more."""
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return False
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return is_ours and PidFile(folder / OWNER).is_left_behind() and not find_running(folder)
