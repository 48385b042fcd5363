"""Words of link logs that `addressing.topology` and `wire` need, too: record levels, personal columns, causes of ends.

A link log is the files with the records of one node's traffic.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

BY_PEER: Final = "by the peer: "
"""Prefix of the cause of an end in a record, if the cause is a condition that the peer chose freely."""

KNOWN_CONDITION: Final = re.compile(r"amqp(mesh)?:[a-z:-]+")
"""Pattern of the error conditions of AMQP and amqpmesh, which records give without the prefix BY_PEER."""
PERSONAL_COLUMNS: Final = ("user", "remote_address", "container", "address", "name")
"""Columns of link logs with personal data; link names count, as they have container-ids and addresses in them."""


class Level(StrEnum):
    """Record level of an address, or of a whole mesh: how much nodes record of its deliveries in link logs."""

    OFF = "off"
    SUMMARY = "summary"
    """Sums over the deliveries of each second, and latencies by bucket."""
    FULL = "full"
    """A record for each delivery."""
