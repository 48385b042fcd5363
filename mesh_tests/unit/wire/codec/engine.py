"""What does proton's engine make of an encoded value?"""

from __future__ import annotations

from proton import Data, ProtonException


def reencode(encoded: bytes) -> bytes | None:
    """Decoded and encoded again by the engine; None when it does not take it, or not to its end."""
    data = Data()
    rest = encoded
    while rest:
        try:
            rest = rest[data.decode(rest) :]
        except ProtonException:
            return None
        break
    return None if rest else bytes(data.encode())
