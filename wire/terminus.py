"""Termini of a link, source and target, read from the engine and written to the engine. [3.5.3], [3.5.4]"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from wire import data
from wire.engine import Pointer, chars, lib, text


class TerminusType(IntEnum):
    UNSPECIFIED = lib.PN_UNSPECIFIED
    SOURCE = lib.PN_SOURCE
    TARGET = lib.PN_TARGET
    COORDINATOR = lib.PN_COORDINATOR


class Durability(IntEnum):
    NONE = lib.PN_NONDURABLE
    CONFIGURATION = lib.PN_CONFIGURATION
    UNSETTLED_STATE = lib.PN_DELIVERIES


class Expiry(IntEnum):
    LINK_DETACH = lib.PN_EXPIRE_WITH_LINK
    SESSION_END = lib.PN_EXPIRE_WITH_SESSION
    CONNECTION_CLOSE = lib.PN_EXPIRE_WITH_CONNECTION
    NEVER = lib.PN_EXPIRE_NEVER


class DistributionMode(IntEnum):
    UNSPECIFIED = lib.PN_DIST_MODE_UNSPECIFIED
    COPY = lib.PN_DIST_MODE_COPY
    MOVE = lib.PN_DIST_MODE_MOVE


@dataclass(frozen=True, slots=True)
class Terminus:
    """The source or target of a link, as Python values. ``type`` UNSPECIFIED means that the terminus is null."""

    address: str | None = None
    type: TerminusType = TerminusType.UNSPECIFIED
    durability: Durability = Durability.NONE
    expiry: Expiry = Expiry.SESSION_END
    timeout_s: int = 0
    is_dynamic: bool = False
    distribution_mode: DistributionMode = DistributionMode.UNSPECIFIED
    capabilities: tuple[str, ...] = ()
    filter: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)
    outcomes: tuple[str, ...] = ()

    @property
    def is_null(self) -> bool:
        return self.type is TerminusType.UNSPECIFIED

    @property
    def outlives_link(self) -> bool:
        """Whether the terminus is to stay when its link ends: true if it is durable, or never expires. [3.5.1]"""
        return self.durability is not Durability.NONE or self.expiry is Expiry.NEVER


NULL_TERMINUS = Terminus()
# A look-up by the engine's number costs a fifth of a call of the enumeration.
_TYPES = {int(each): each for each in TerminusType}
_DURABILITIES = {int(each): each for each in Durability}
_EXPIRIES = {int(each): each for each in Expiry}
_MODES = {int(each): each for each in DistributionMode}

WAITS_WHEN_FULL = "amqpmesh:waits-when-full"
"""Target capability of a router's link to all queues of a pattern, which reads on while messages to a full queue wait.

An embedded broker gives each such message the state `received` at once [3.4.1], and the outcome once there is room.
"""


class TerminusHead(NamedTuple):
    """The fields of a terminus that decide how an attach is answered. ``type`` UNSPECIFIED: the terminus is null."""

    type: TerminusType = TerminusType.UNSPECIFIED
    address: str | None = None
    is_dynamic: bool = False


NULL_HEAD = TerminusHead()


def source(address: str | None, **fields: Any) -> Terminus:
    return Terminus(address, TerminusType.SOURCE, **fields)


def target(address: str | None, **fields: Any) -> Terminus:
    return Terminus(address, TerminusType.TARGET, **fields)


def read(terminus: Pointer) -> Terminus:
    kind = _TYPES[lib.pn_terminus_get_type(terminus)]
    if kind is TerminusType.UNSPECIFIED:
        return NULL_TERMINUS
    return Terminus(
        address=text(lib.pn_terminus_get_address(terminus)),
        type=kind,
        durability=_DURABILITIES[lib.pn_terminus_get_durability(terminus)],
        expiry=_EXPIRIES[lib.pn_terminus_get_expiry_policy(terminus)],
        timeout_s=lib.pn_terminus_get_timeout(terminus),
        is_dynamic=bool(lib.pn_terminus_is_dynamic(terminus)),
        distribution_mode=_MODES[lib.pn_terminus_get_distribution_mode(terminus)],
        capabilities=data.read_symbols(lib.pn_terminus_capabilities(terminus)),
        filter=data.read_map(lib.pn_terminus_filter(terminus)),
        properties=data.read_map(lib.pn_terminus_properties(terminus)),
        outcomes=data.read_symbols(lib.pn_terminus_outcomes(terminus)),
    )


def read_head(terminus: Pointer) -> TerminusHead:
    kind = _TYPES[lib.pn_terminus_get_type(terminus)]
    if kind is TerminusType.UNSPECIFIED:
        return NULL_HEAD
    address = text(lib.pn_terminus_get_address(terminus))
    return TerminusHead(kind, address, bool(lib.pn_terminus_is_dynamic(terminus)))


def outlives_link(terminus: Pointer) -> bool:
    """Return `Terminus.outlives_link` for the engine's ``terminus``, without reading all its fields."""
    if lib.pn_terminus_get_type(terminus) == lib.PN_UNSPECIFIED:
        return False
    return bool(
        lib.pn_terminus_get_durability(terminus) != lib.PN_NONDURABLE
        or lib.pn_terminus_get_expiry_policy(terminus) == lib.PN_EXPIRE_NEVER
    )


def is_browsed(terminus: Pointer) -> bool:
    """Return whether the engine's ``terminus``, a source, has the distribution mode copy."""
    return bool(lib.pn_terminus_get_distribution_mode(terminus) == lib.PN_DIST_MODE_COPY)


def write(terminus: Pointer, value: Terminus) -> None:
    # The type of the terminus is set even when only capabilities are given: without a type proton drops all other
    # fields.
    lib.pn_terminus_set_type(terminus, int(value.type))
    lib.pn_terminus_set_address(terminus, chars(value.address))
    lib.pn_terminus_set_durability(terminus, int(value.durability))
    lib.pn_terminus_set_expiry_policy(terminus, int(value.expiry))
    lib.pn_terminus_set_timeout(terminus, value.timeout_s)
    lib.pn_terminus_set_dynamic(terminus, value.is_dynamic)
    lib.pn_terminus_set_distribution_mode(terminus, int(value.distribution_mode))
    data.write_symbols(lib.pn_terminus_capabilities(terminus), value.capabilities)
    data.write_map(lib.pn_terminus_filter(terminus), value.filter)
    data.write_map(lib.pn_terminus_properties(terminus), value.properties)
    data.write_symbols(lib.pn_terminus_outcomes(terminus), value.outcomes)


def copy_plain_source(terminus: Pointer, other: Pointer) -> None:
    """Set ``terminus`` to the source `other` as far as every receiver has it: address, capabilities and outcomes.

    Durability, expiry, timeout, distribution mode, filter and properties get their default values.
    """
    lib.pn_terminus_copy(terminus, other)
    lib.pn_terminus_set_durability(terminus, lib.PN_NONDURABLE)
    lib.pn_terminus_set_expiry_policy(terminus, lib.PN_EXPIRE_WITH_SESSION)
    lib.pn_terminus_set_timeout(terminus, 0)
    lib.pn_terminus_set_dynamic(terminus, False)
    lib.pn_terminus_set_distribution_mode(terminus, lib.PN_DIST_MODE_UNSPECIFIED)
    lib.pn_data_clear(lib.pn_terminus_filter(terminus))
    lib.pn_data_clear(lib.pn_terminus_properties(terminus))
    for field_of in (lib.pn_terminus_capabilities, lib.pn_terminus_outcomes):
        copied = field_of(terminus)
        if names := data.read_symbols(copied):
            data.write_symbols(copied, names)
        else:
            lib.pn_data_clear(copied)
