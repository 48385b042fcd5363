"""Which random lives does a test lead?"""

from __future__ import annotations

import os


def seeds(count: int, *failed: int) -> list[int]:
    """The first ``count``, and those that ``failed`` once; or what LIFE_FIRST and LIFE_COUNT of the environment say."""
    if "LIFE_FIRST" not in os.environ:
        return [*range(1, 1 + count), *failed]
    first = int(os.environ["LIFE_FIRST"])
    return list(range(first, first + int(os.environ.get("LIFE_COUNT", "1"))))
