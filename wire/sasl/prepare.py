"""Normal form (SASLprep) of user names in PLAIN, for comparison with the names of known users. [RFC 4013]"""

from __future__ import annotations

from scramp.utils import ScramException, saslprep  # type: ignore[import-untyped]


def prepare(text: str) -> str:
    """Return ``text`` in SASLprep's normal form; unchanged if SASLprep forbids the text."""
    try:
        return str(saslprep(text))
    except ScramException:
        return text
