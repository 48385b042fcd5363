"""The result of a check of this machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """``state``: ok, warning (works, but not for all), failed (a mesh will not run), absent (optional, not there)."""

    check: str
    state: str
    detail: str
    fix: str = ""
