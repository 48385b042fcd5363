"""What does a router do that records every delivery? `python -m mesh.bench.recorded PARENT ARGUMENTS`, as the leash.

Nobody empties the ring: what is measured is the writing.
"""

from __future__ import annotations

from mesh.bench import leash
from router.forwarding.records import record

RECORDS = 65536
"""1.8 MB: more than a processor keeps at hand, as with a ring that somebody reads later."""


def main() -> None:
    record(RECORDS)
    leash.main()


if __name__ == "__main__":
    main()
