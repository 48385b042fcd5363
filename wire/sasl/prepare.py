"""Normal form of names and passwords, for comparison. [RFC 4013]"""

from __future__ import annotations

from scramp.utils import ScramException, saslprep  # type: ignore[import-untyped]


def prepare(text: str) -> str:
    """Normalize as SASLprep says; a forbidden text stays as it is, and so matches only itself."""
    try:
        return str(saslprep(text))
    except ScramException:
        return text
