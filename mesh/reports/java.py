"""Checks that the Python packages and the Java for Spark are installed, and names the command that installs a missing
one.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess

from mesh.terminal.failure import CommandFailed

OLDEST_JAVA = 17
SPARK = ("pyspark", "pandas", "pyarrow")


def require_spark() -> None:
    """Raise CommandFailed unless Spark's Python packages and a Java that is new enough are installed.

    The error has the command that installs the missing part.
    """
    missing = [name for name in SPARK if importlib.util.find_spec(name) is None]
    if missing:
        raise CommandFailed(f"a report needs Spark, and {missing[0]} is not installed", fix="pip install '.[spark]'")
    found = java_version()
    if found is None:
        raise CommandFailed(
            f"a report needs Java {OLDEST_JAVA} or newer, and {_nowhere()}",
            fix="apt install default-jre-headless",
        )
    if found < OLDEST_JAVA:
        raise CommandFailed(
            f"{java_path()} is Java {found}: a report needs Java {OLDEST_JAVA} or newer",
            fix="apt install default-jre-headless, or set JAVA_HOME to where a newer one is",
        )


def _nowhere() -> str:
    home = os.environ.get("JAVA_HOME")
    if home:
        return f"JAVA_HOME is {home}, where there is no bin/java that runs"
    return "there is no java in PATH that runs"


def java_path() -> str | None:
    """Return the path of the `java` that Spark would start, from JAVA_HOME or else PATH; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java")) if home else shutil.which("java")


def java_version() -> int | None:
    """Return the major version of Java, such as 8 for a Java that calls itself 1.8.

    None if no Java runs, or if it does not tell its version.
    """
    path = java_path()
    if path is None:
        return None
    said = subprocess.run([path, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found[1]) if found else None
