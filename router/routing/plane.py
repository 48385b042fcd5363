"""The type of a router's knowledge of other routers: link state at an interior router, uplinks at an edge router."""

from __future__ import annotations

from typing import TypeAlias

from router.routing.core import Routing
from router.routing.uplinks import Uplinks

Plane: TypeAlias = Routing | Uplinks
