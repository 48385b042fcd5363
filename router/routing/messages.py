"""The control messages between routers as AMQP maps: HELLO, RA, LSR, LSU, MAU, MAR, CHECK, SEEN.

The opcodes are named as in Qpid Dispatch, the protocol is our own: every message goes one hop, over the control link
of one neighbor. LSU and MAU name the router they are about in ``id``, and a router passes changes on to its other
neighbors. CHECK and SEEN are passed on along the paths to the routers they are for. A further message, CIRCUIT, belongs
to `router.circuits.announced_specs`.

HELLO  The sender is alive; ``seen`` is the router that the sender hears on this connection, ``cost`` the cost of the
       connection at the sender's end.
RA     The sender's own versions, and a checksum over the versions of all routers that the sender reaches: a receiver
       with another checksum answers with LSR.
LSR    Asks for all state newer than ``have`` {router: [instance, ls_seq, mobile_seq]}; answered with LSU and MAU.
LSU    The link state of router ``id``: its neighbors with costs. Or ``several``: a list of link states sent by ``id``.
MAU    The routing keys that router ``id`` advertises, mostly of addresses for which the router has takers: ``add`` and
       ``del`` since version ``since``, or ``exist``: all keys.
MAR    Asks for all addresses of ``router`` if the neighbor has a newer version than ``instance`` and ``have_seq``.
CHECK  Asks the routers ``to`` for a SEEN, once the addresses that router ``id`` advertises are in effect there, in the
       version ``instance`` and ``mobile_seq`` or a newer one: each delivery that begins then goes to their takers, too.
SEEN   Router ``id`` answers the CHECK of router ``router``: ``seen_instance`` and ``seen_seq`` are its version.

An edge router and its active uplink (`router.routing.uplinks`) exchange HELLO, the MAU of the edge, CHECK and SEEN in
both directions, and

ASK    Asks the uplink whether the keys ``add`` have takers elsewhere, now and at every change; ends the question for
       the keys ``del``. Or asks for the keys ``exist`` and no others.
REACH  The uplink's answer for asked keys: ``taken`` keys have takers in reach, ``announced`` keys only takers out of
       reach, ``none`` keys have no takers.

A reader ignores unknown fields, and accepts any kind of sequence and missing optional fields. A malformed message
raises ControlMessageError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, TypeAlias

from router.routing.fields import ControlMessageError, costs, maps, number, packed, submap, text, texts, unexpected

PROTOCOL_VERSION = 1
AREA = "0"

Body: TypeAlias = Mapping[str, Any]


class Versions(NamedTuple):
    """The versions of one router's state.

    ``instance`` numbers the lives of the router, ``ls_seq`` its link states and ``mobile_seq`` its lists of addresses.
    State of a higher instance is newer, whatever the sequence numbers.
    """

    instance: int
    ls_seq: int
    mobile_seq: int


@dataclass(frozen=True, slots=True)
class Hello:
    opcode: ClassVar[str] = "HELLO"
    id: str
    instance: int
    seen: tuple[str, ...]
    cost: int

    def to_map(self) -> Body:
        return {**_head(self.id), "instance": self.instance, "seen": list(self.seen), "cost": self.cost}

    @staticmethod
    def from_map(body: Body) -> Hello:
        return Hello(
            text(body, "id"), number(body, "instance"), texts(body, "seen"), number(body, "cost", default=1, least=1)
        )


@dataclass(frozen=True, slots=True)
class Ra:
    opcode: ClassVar[str] = "RA"
    id: str
    versions: Versions
    checksum: int

    def to_map(self) -> Body:
        return {**_head(self.id), **self.versions._asdict(), "checksum": self.checksum}

    @staticmethod
    def from_map(body: Body) -> Ra:
        versions = Versions(number(body, "instance"), number(body, "ls_seq"), number(body, "mobile_seq"))
        return Ra(text(body, "id"), versions, number(body, "checksum"))


@dataclass(frozen=True, slots=True)
class Lsr:
    opcode: ClassVar[str] = "LSR"
    id: str
    have: Mapping[str, Versions]

    def to_map(self) -> Body:
        return {**_head(self.id), "have": packed(self.have)}

    @staticmethod
    def from_map(body: Body) -> Lsr:
        have = submap(body, "have", default={})
        return Lsr(text(body, "id"), {str(router): _versions(router, value) for router, value in have.items()})


@dataclass(frozen=True, slots=True)
class Lsu:
    opcode: ClassVar[str] = "LSU"
    id: str
    instance: int
    ls_seq: int
    peers: Mapping[str, int]

    def to_map(self) -> Body:
        state = {"id": self.id, "area": AREA, "ls_seq": self.ls_seq, "peers": dict(self.peers)}
        return {**_head(self.id), "instance": self.instance, "ls_seq": self.ls_seq, "ls": state}

    @staticmethod
    def from_map(body: Body) -> Lsu:
        peers = costs(submap(body, "ls"), "peers")
        return Lsu(text(body, "id"), number(body, "instance"), number(body, "ls_seq"), peers)


@dataclass(frozen=True, slots=True)
class Lsus:
    """The control message LSU with the link states of several routers."""

    opcode: ClassVar[str] = "LSU"
    id: str
    several: tuple[Lsu, ...]

    def to_map(self) -> Body:
        maps = [{"id": u.id, "instance": u.instance, "ls_seq": u.ls_seq, "peers": u.peers} for u in self.several]
        return {**_head(self.id), "several": packed(maps)}

    @staticmethod
    def from_map(body: Body) -> Lsus:
        several = (
            Lsu(text(each, "id"), number(each, "instance"), number(each, "ls_seq"), costs(each, "peers"))
            for each in maps(body, "several")
        )
        return Lsus(text(body, "id"), tuple(several))


@dataclass(frozen=True, slots=True)
class MauChanges:
    """The control message MAU with the changes of a router's addresses since version ``since``.

    A receiver that has another version than ``since`` asks for all addresses (`Mar`).
    """

    opcode: ClassVar[str] = "MAU"
    id: str
    instance: int
    since: int
    mobile_seq: int
    added: tuple[str, ...]
    removed: tuple[str, ...]

    def to_map(self) -> Body:
        versions = {"instance": self.instance, "since": self.since, "mobile_seq": self.mobile_seq}
        return {**_head(self.id), **versions, "add": packed(self.added), "del": packed(self.removed)}

    @staticmethod
    def from_map(body: Body) -> MauChanges:
        mobile_seq = number(body, "mobile_seq", least=1)
        return MauChanges(
            text(body, "id"),
            number(body, "instance"),
            number(body, "since", default=mobile_seq - 1),
            mobile_seq,
            texts(body, "add"),
            texts(body, "del"),
        )


@dataclass(frozen=True, slots=True)
class MauAll:
    opcode: ClassVar[str] = "MAU"
    id: str
    instance: int
    mobile_seq: int
    addresses: tuple[str, ...]

    def to_map(self) -> Body:
        versions = {"instance": self.instance, "mobile_seq": self.mobile_seq}
        return {**_head(self.id), **versions, "exist": packed(self.addresses)}

    @staticmethod
    def from_map(body: Body) -> MauAll:
        return MauAll(text(body, "id"), number(body, "instance"), number(body, "mobile_seq"), texts(body, "exist"))


@dataclass(frozen=True, slots=True)
class Mar:
    opcode: ClassVar[str] = "MAR"
    id: str
    router: str
    instance: int
    have_seq: int

    def to_map(self) -> Body:
        return {**_head(self.id), "router": self.router, "instance": self.instance, "have_seq": self.have_seq}

    @staticmethod
    def from_map(body: Body) -> Mar:
        return Mar(text(body, "id"), text(body, "router"), number(body, "instance"), number(body, "have_seq"))


MAX_HOPS = 64
"""Most connections between routers over which a CHECK or SEEN is passed on: paths may lead in a circle for a moment."""


@dataclass(frozen=True, slots=True)
class VersionCheck:
    """The control message CHECK: are the addresses of router ``id`` in effect at the routers ``to``?"""

    opcode: ClassVar[str] = "CHECK"
    id: str
    instance: int
    mobile_seq: int
    to: tuple[str, ...]
    hops: int = MAX_HOPS

    def to_map(self) -> Body:
        versions = {"instance": self.instance, "mobile_seq": self.mobile_seq}
        return {**_head(self.id), **versions, "to": packed(self.to), "hops": self.hops}

    @staticmethod
    def from_map(body: Body) -> VersionCheck:
        versions = number(body, "instance"), number(body, "mobile_seq")
        return VersionCheck(text(body, "id"), *versions, texts(body, "to"), number(body, "hops", default=MAX_HOPS))


@dataclass(frozen=True, slots=True)
class VersionConfirmation:
    """The control message SEEN. ``instance`` is that of router ``id``, which saw the addresses of ``router``."""

    opcode: ClassVar[str] = "SEEN"
    id: str
    instance: int
    router: str
    seen_instance: int
    seen_seq: int
    hops: int = MAX_HOPS

    def to_map(self) -> Body:
        seen = {"router": self.router, "seen_instance": self.seen_instance, "seen_seq": self.seen_seq}
        return {**_head(self.id), "instance": self.instance, **seen, "hops": self.hops}

    @staticmethod
    def from_map(body: Body) -> VersionConfirmation:
        return VersionConfirmation(
            text(body, "id"),
            number(body, "instance"),
            text(body, "router"),
            number(body, "seen_instance"),
            number(body, "seen_seq"),
            number(body, "hops", default=MAX_HOPS),
        )


class ReachLevel(StrEnum):
    """An interior router's answer to an edge router that asks whether a routing key has takers elsewhere.

    TAKEN: takers are in reach; ANNOUNCED: only takers out of reach are known; NONE: no takers are known.
    """

    TAKEN = "taken"
    ANNOUNCED = "announced"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Ask:
    """The control message ASK: routing keys of which an edge router wants to know whether other routers have takers.

    ``added`` and ``removed`` change the keys asked for before. With ``is_all`` the edge router asks for the keys in
    ``added`` and for no others.
    """

    opcode: ClassVar[str] = "ASK"
    id: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    is_all: bool = False

    def to_map(self) -> Body:
        if self.is_all:
            return {**_head(self.id), "exist": packed(self.added)}
        return {**_head(self.id), "add": packed(self.added), "del": packed(self.removed)}

    @staticmethod
    def from_map(body: Body) -> Ask:
        if "exist" in body:
            return Ask(text(body, "id"), texts(body, "exist"), (), is_all=True)
        return Ask(text(body, "id"), texts(body, "add"), texts(body, "del"))


@dataclass(frozen=True, slots=True)
class Reach:
    opcode: ClassVar[str] = "REACH"
    id: str
    levels: Mapping[str, ReachLevel]

    def to_map(self) -> Body:
        by_level = {level: [key for key, each in self.levels.items() if each is level] for level in ReachLevel}
        return {**_head(self.id), **{level.value: packed(keys) for level, keys in by_level.items() if keys}}

    @staticmethod
    def from_map(body: Body) -> Reach:
        return Reach(text(body, "id"), {key: level for level in ReachLevel for key in texts(body, level.value)})


Message: TypeAlias = (
    Hello | Ra | Lsr | Lsu | Lsus | MauChanges | MauAll | Mar | VersionCheck | VersionConfirmation | Ask | Reach
)


class UnknownMessage(Exception):
    """A control message has an unknown opcode or a later protocol version: the receiving router ignores the message."""


def parse(opcode: str, body: Body) -> Message:
    """Return the control message with this opcode and body.

    Raises ControlMessageError for a malformed body, UnknownMessage for an unknown opcode or a newer protocol version.
    """
    read = _READERS.get(opcode)
    if read is None:
        raise UnknownMessage(f"unknown opcode {opcode!r}")
    if not isinstance(body, Mapping):
        what = f"expected a map as body of a neighbor router's control message, got a {type(body).__name__}"
        raise ControlMessageError(f"{opcode}: {what}")
    try:
        if (version := number(body, "pv", default=0)) > PROTOCOL_VERSION:
            raise UnknownMessage(f"{opcode}: expected protocol version {PROTOCOL_VERSION} or earlier, got {version}")
        return read(body)
    except ControlMessageError as error:
        raise ControlMessageError(f"{opcode}: {error.description}") from None


def _read_lsu(body: Body) -> Lsu | Lsus:
    return Lsus.from_map(body) if "several" in body else Lsu.from_map(body)


def _read_mau(body: Body) -> MauChanges | MauAll:
    if "exist" not in body:
        return MauChanges.from_map(body)
    if "add" in body or "del" in body:
        raise ControlMessageError("expected in a MAU either the field exist, or the fields add and del, got both")
    return MauAll.from_map(body)


_READERS: Mapping[str, Callable[[Body], Message]] = {
    "HELLO": Hello.from_map,
    "RA": Ra.from_map,
    "LSR": Lsr.from_map,
    "LSU": _read_lsu,
    "MAU": _read_mau,
    "MAR": Mar.from_map,
    "CHECK": VersionCheck.from_map,
    "SEEN": VersionConfirmation.from_map,
    "ASK": Ask.from_map,
    "REACH": Reach.from_map,
}


def _head(router_id: str) -> dict[str, Any]:
    return {"id": router_id, "pv": PROTOCOL_VERSION, "area": AREA}


def _versions(router: Any, value: Any) -> Versions:
    try:
        instance, ls_seq, mobile_seq = (int(part) for part in value)
    except (TypeError, ValueError):
        raise unexpected("have", value, f"expected three integers as versions of router {router!r}") from None
    return Versions(instance, ls_seq, mobile_seq)
