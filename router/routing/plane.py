"""What a router knows of the others: an interior router its link state, an edge router its uplinks."""

from __future__ import annotations

from typing import TypeAlias

from router.routing.core import Routing
from router.routing.uplinks import Uplinks

Plane: TypeAlias = Routing | Uplinks
