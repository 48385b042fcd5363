"""The addresses that each router advertises, including this router, and the routers that have takers for an address.

Sans-IO. An address is a routing key here, a string that is only compared. The addresses of a router have a version
(instance, mobile_seq). Changes apply only to the version from which the changes start; a caller that lacks this version
asks the neighbor for all addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import TypeAlias

from router.routing.messages import MauAll, MauChanges

Version: TypeAlias = tuple[int, int]


@dataclass(slots=True)
class AddressRecord:
    instance: int = 0
    mobile_seq: int = 0
    addresses: set[str] = field(default_factory=set)

    @property
    def version(self) -> Version:
        return self.instance, self.mobile_seq


@dataclass(frozen=True, slots=True)
class Changes:
    added: frozenset[str]
    removed: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


class MobileAddresses:
    def __init__(self) -> None:
        self._records: dict[str, AddressRecord] = {}
        # Routing key -> the routers that advertise it, in a tuple and not a set: nearly every key has one router, and a
        # set takes 168 bytes more.
        self._holders: dict[str, tuple[str, ...]] = {}

    def version(self, router: str) -> Version:
        record = self._records.get(router)
        return record.version if record else (0, 0)

    def addresses(self, router: str) -> Set[str]:
        """Return the routing keys that ``router`` advertises: the set itself, which changes later, and not a copy."""
        record = self._records.get(router)
        return record.addresses if record else frozenset()

    def holders(self, key: str) -> tuple[str, ...]:
        return self._holders.get(key, ())

    def follows(self, mau: MauChanges) -> bool:
        """True if the changes in ``mau`` start from the stored version of its router's addresses.

        Only then may `apply` store the changes.
        """
        return self.version(mau.id) == (mau.instance, mau.since)

    def apply(self, mau: MauChanges) -> Changes:
        record = self._records.setdefault(mau.id, AddressRecord())
        record.instance, record.mobile_seq = mau.instance, mau.mobile_seq
        return self._change(mau.id, record, mau.added, mau.removed)

    def replace(self, mau: MauAll) -> Changes:
        record = self._records.setdefault(mau.id, AddressRecord())
        record.instance, record.mobile_seq = mau.instance, mau.mobile_seq
        return self._change(mau.id, record, mau.addresses, record.addresses.difference(mau.addresses))

    def forget(self, router: str) -> Changes:
        record = self._records.pop(router, AddressRecord())
        return self._change(router, record, (), tuple(record.addresses))

    def _change(self, router: str, record: AddressRecord, added: Iterable[str], removed: Iterable[str]) -> Changes:
        gone = frozenset(key for key in removed if key in record.addresses)
        new = frozenset(key for key in added if key not in record.addresses)
        for key in gone:
            self._drop_holder(key, router)
        for key in new:
            self._holders[key] = (*self._holders.get(key, ()), router)
        record.addresses -= gone
        record.addresses |= new
        return Changes(new, gone)

    def _drop_holder(self, key: str, router: str) -> None:
        left = tuple(holder for holder in self._holders[key] if holder != router)
        if left:
            self._holders[key] = left
        else:
            del self._holders[key]
