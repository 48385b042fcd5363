"""Checks for `amqpmesh doctor` whether this machine can make reports of link logs."""

from __future__ import annotations

import importlib.metadata
import importlib.util

from mesh.operations.finding import DoctorFinding
from mesh.reports.java import OLDEST_JAVA, SPARK, java_path, java_version

JAVA_FIX = "for reports of link logs, Qpid JMS and Artemis in the interop tests: apt install default-jre-headless"
SPARK_FIX = "for reports of link logs: pip install '.[spark]'"


def java() -> DoctorFinding:
    """Return the finding on the Java that Spark would start, from JAVA_HOME or PATH: ok, missing or too old."""
    found = java_version()
    if found is None:
        return DoctorFinding("java", "absent", "no Java in JAVA_HOME or PATH; optional", JAVA_FIX)
    told = f"Java {found} at {java_path()}"
    if found < OLDEST_JAVA:
        fix = f"{JAVA_FIX}, or set JAVA_HOME to where Java {OLDEST_JAVA} is"
        return DoctorFinding("java", "warning", f"{told}: reports of link logs need {OLDEST_JAVA} or newer", fix)
    return DoctorFinding("java", "ok", told)


def spark() -> DoctorFinding:
    missing = [name for name in SPARK if importlib.util.find_spec(name) is None]
    if missing:
        return DoctorFinding("spark", "absent", f"{', '.join(missing)} not installed; optional", SPARK_FIX)
    return DoctorFinding("spark", "ok", ", ".join(f"{name} {importlib.metadata.version(name)}" for name in SPARK))
