"""A Debian with its essential packages, those of Python and nothing else; a wheel is installed there without a network.

mmdebstrap takes the packages from the mirror of the machine's release. A Python that the release does not have is the
machine's own, mounted at its place: Debian 12 has 3.11 only.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# With what its extension modules are linked to, and ensurepip's wheels.
PACKAGES = "python3-venv"
DEBIAN_PYTHON = Path("usr/bin/python3")
VENV = "/opt/amqpmesh"
WHEELS = "/wheels"
COMMAND_S = 100.0


class BareDebian:
    """Runs commands as root of the file system below ``root``, in mounts and processes of their own."""

    def __init__(self, root: Path, release: str) -> None:
        self._root = root
        self._mounts: tuple[str, ...] = ()
        done = subprocess.run(
            ["mmdebstrap", "--quiet", "--mode=root", "--variant=essential", f"--include={PACKAGES}", release, root],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def install(self, wheels: Sequence[Path]) -> None:
        """Install ``wheels`` in a virtual environment with Debian's Python, or the one that runs the tests."""
        (self._root / WHEELS[1:]).mkdir()
        for wheel in wheels:
            shutil.copy(wheel, self._root / WHEELS[1:])
        installed = self.run(
            f"{shlex.quote(self._python())} -m venv {VENV} && "
            f"{VENV}/bin/pip install -q --no-index --find-links {WHEELS} amqpmesh"
        )
        assert installed.returncode == 0, installed.stdout + installed.stderr

    def _python(self) -> str:
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        if (self._root / DEBIAN_PYTHON).resolve().name == version:
            return f"/{DEBIAN_PYTHON}"
        self._mounts = (sys.base_prefix,)
        (self._root / sys.base_prefix[1:]).mkdir(parents=True, exist_ok=True)
        return f"{sys.base_prefix}/bin/{version}"

    def path(self, inside: str) -> Path:
        """Return the path, outside, of what is at ``inside`` there."""
        return self._root / inside[1:]

    def run(self, script: str, folder: str = "/") -> subprocess.CompletedProcess[str]:
        """Run a shell script in ``folder``. When the script ends, so does every process that it left."""
        root = shlex.quote(str(self._root))
        mounts = [f"mount -t proc none {root}/proc", f"mount -t tmpfs none {root}/dev/shm"]
        mounts += [f"mount --bind -o ro {path} {root}{path}" for path in map(shlex.quote, self._mounts)]
        inside = f"exec chroot {root} /bin/sh -c {shlex.quote(f'cd {folder} && {script}')}"
        outside = "\n".join(["ip link set lo up", *mounts, inside])
        return subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "sh", "-ec", outside],
            env={"PATH": f"{VENV}/bin:{os.defpath}:/usr/sbin:/sbin", "HOME": "/root", "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
