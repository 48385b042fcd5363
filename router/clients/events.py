"""Debug events about attaches of clients, of which a router makes none unless its log wants them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log import Level, LogEvent


@dataclass(frozen=True, slots=True)
class AttachDecided(LogEvent):
    """The router decided on a client's attach: `treatment` and `pattern` of the address; `broker` of a link route.

    `direction` is incoming for a producer. A producer without an address has neither address nor treatment.
    """

    level: ClassVar[Level] = "debug"
    client: str
    user: str | None
    link: str
    direction: str
    address: str | None
    pattern: str | None
    treatment: str | None
    broker: str | None
