"""The link states and addresses of all routers with their versions, as messages, and the answer to a neighbor's LSR."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from router.routing.link_state import LinkState
from router.routing.messages import Lsr, Lsu, Lsus, MauAll, Ra, Versions
from router.routing.mobile import MobileAddresses


class Database:
    """Makes messages to neighbors from the link states and addresses of all routers.

    Callers change ``link_state`` and ``mobile`` themselves, and then call `on_changed`.
    """

    def __init__(self, router_id: str, link_state: LinkState, mobile: MobileAddresses) -> None:
        self._router_id = router_id
        self._link_state = link_state
        self._mobile = mobile
        self._checksum: int | None = None

    def on_changed(self) -> None:
        self._checksum = None

    def versions(self, router: str) -> Versions:
        instance, ls_seq = self._link_state.version(router)
        mobile_instance, mobile_seq = self._mobile.version(router)
        return Versions(instance, ls_seq, mobile_seq if mobile_instance == instance else 0)

    def checksum(self) -> int:
        """Return the CRC-32 over the versions of all routers in reach.

        Routers out of reach do not count, because each router deletes their state at another moment.
        """
        if self._checksum is None:
            state = [(router, *self.versions(router)) for router in sorted(self._link_state.reachable)]
            self._checksum = zlib.crc32(repr(state).encode())
        return self._checksum

    def request(self) -> Lsr:
        return Lsr(self._router_id, {router: self.versions(router) for router in self._link_state.records})

    def announcement(self) -> Ra:
        return Ra(self._router_id, self.versions(self._router_id), self.checksum())

    def link_states(self, routers: Sequence[str]) -> Lsu | Lsus:
        records = self._link_state.records
        lsus = tuple(Lsu(r, records[r].instance, records[r].ls_seq, records[r].peers) for r in routers)
        return lsus[0] if len(lsus) == 1 else Lsus(self._router_id, lsus)

    def all_addresses(self, router: str) -> MauAll:
        return MauAll(router, *self._mobile.version(router), tuple(sorted(self._mobile.addresses(router))))

    def answer(self, lsr: Lsr, now: float) -> Iterator[Lsu | Lsus | MauAll]:
        """Yield messages with all state newer than the versions that the neighbor's ``lsr`` says it has.

        Link states come first: the neighbor ignores the addresses of a router whose link state it does not have.
        Routers that were out of reach for long are left out (`LinkState.is_worth_telling`).
        """
        nothing = Versions(0, 0, 0)
        worth_telling = [r for r in self._link_state.records if self._link_state.is_worth_telling(r, now)]
        have = {router: lsr.have.get(router, nothing) for router in worth_telling}
        if lacking := [r for r in worth_telling if self._link_state.version(r) > have[r][:2]]:
            yield self.link_states(lacking)
        for router in worth_telling:
            version = self._mobile.version(router)
            # A router at mobile_seq 0 has no addresses: the neighbor learns so from the instance in the LSU.
            if version[1] > 0 and version > (have[router].instance, have[router].mobile_seq):
                yield self.all_addresses(router)
