"""Words of the link log for topology and wire, too: record levels, personal columns, and the cause of an end."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

BY_PEER: Final = "by the peer: "
"""Prefix of a cause that is the peer's own condition, which the peer may call anything."""

KNOWN_CONDITION: Final = re.compile(r"amqp(mesh)?:[a-z:-]+")
"""Pattern of conditions of AMQP and of amqpmesh."""
PERSONAL_COLUMNS: Final = ("user", "remote_address", "container", "address", "name")
"""Columns with personal data. Link names have containers and addresses in them."""


class Level(StrEnum):
    """Level of recording."""

    OFF = "off"
    SUMMARY = "summary"
    """Sums over the deliveries of each second, and latencies by bucket."""
    FULL = "full"
    """A record for each delivery."""
