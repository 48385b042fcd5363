"""The result of one check of `amqpmesh doctor`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The finding of one check of `amqpmesh doctor` on this machine, with a fix for the user.

    ``state``: ok, warning (works with limits), failed (a mesh will not run), absent (an optional program is missing).
    """

    check: str
    state: str
    detail: str
    fix: str = ""
