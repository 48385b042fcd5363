"""The routing state of one interior router: neighbors, link states, addresses and paths.

Sans-IO. Feed the core inputs and carry out the returned actions in order. ``now`` is monotonic seconds and never goes
back.

State spreads as follows. A router passes a changed LSU or MAU on to its other neighbors: an LSU at once if the change
is a loss, else together with other changes (`flooding.py`, `advertisements.py`). When a neighbor comes up, or its
connection was replaced (messages in flight are lost), this router asks the neighbor by an LSR for all newer state.
Nothing is flooded to a neighbor before the neighbor's own LSR, because the answer to the LSR holds everything. Should a
message be lost all the same, the RA sent to each neighbor every ``ra_interval_s`` has another checksum, and is answered
by an LSR.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from router.routing import spf
from router.routing.actions import (
    Action,
    AddressesChanged,
    CloseConnection,
    ConfirmationRequest,
    LinkStateChanged,
    RouterForgotten,
    SendControl,
)
from router.routing.advertisements import Advertisements
from router.routing.confirmations import Confirmations
from router.routing.database import Database
from router.routing.events import ControlMessageRefused, DuplicateRouterId, RouterRestarted
from router.routing.fields import ControlMessageError
from router.routing.flooding import Flooding
from router.routing.link_state import LinkState, LinkStateRecord
from router.routing.messages import (
    Ask,
    Hello,
    Lsr,
    Lsu,
    Lsus,
    Mar,
    MauAll,
    MauChanges,
    Message,
    Ra,
    Reach,
    UnknownMessage,
    VersionCheck,
    VersionConfirmation,
    parse,
)
from router.routing.mobile import Changes, MobileAddresses, Version
from router.routing.neighbors import Neighbors
from router.routing.settings import RoutingSettings
from router.routing.snapshot import NeighborSnapshot, RouterSnapshot, RoutingSnapshot

_NOBODY: frozenset[str] = frozenset()


class Routing:
    """The routing core of an interior router: takes inputs, returns actions, answers queries about paths and takers.

    ``instance`` distinguishes the lives of a router: higher after each restart, e.g. the boot time in seconds.
    Raises ValueError if ``instance`` is below 1 or ``router_id`` is empty.
    """

    def __init__(self, router_id: str, instance: int, settings: RoutingSettings | None = None) -> None:
        if not router_id or instance < 1:
            raise ValueError(
                f"bug in the program: router id {router_id!r}, instance {instance}, expected an id and at least 1"
            )
        self._settings = settings or RoutingSettings()
        self._router_id = router_id
        self._instance = instance
        self._neighbors = Neighbors(router_id, instance, self._settings)
        self._link_state = LinkState(router_id, instance, self._settings.remote_ls_max_age_s)
        self._mobile = MobileAddresses()
        self._mobile.replace(MauAll(router_id, instance, 0, ()))
        self._database = Database(router_id, self._link_state, self._mobile)
        self._advertising = Advertisements(self._settings.mau_interval_s)
        self._flooding = Flooding(self._settings.lsu_interval_s)
        self._confirmations = Confirmations(self._settings.check_interval_s)
        self._used: Mapping[str, int] = {}  # Neighbor -> the connection in use to it, on which an LSR was sent.
        self._told: set[str] = set()  # The neighbors whose LSR was answered: floods go to these neighbors only.
        self._awaited: dict[str, int] = {}  # Router whose addresses were asked for by MAR -> connection of the MAR.
        self._ignoring: set[int] = set()
        self._next_ra: float | None = None
        self._challenger = 0  # The highest instance under which another router spreads state of this router's id.
        self._reclaim_at = 0.0
        self._paths: tuple[int, spf.ShortestPaths] | None = None

    # Inputs

    def on_connected(self, connection: int, cost: int, now: float) -> list[Action]:
        """Send HELLO on ``connection``, which goes to an interior router and whose control links are up now.

        The peer's HELLO will say which router is at the other end. ``cost``: this router's cost of the connection.
        """
        return self._neighbors.on_connected(connection, cost, now)

    def on_cost_changed(self, connection: int, cost: int, now: float) -> list[Action]:
        return self._neighbors.on_cost_changed(connection, cost) + self._follow_neighbors(now)

    def on_connection_lost(self, connection: int, now: float) -> list[Action]:
        return self._lose(connection, "connection lost", now)

    def on_heard(self, connection: int, now: float) -> None:
        """Note that bytes arrived on ``connection``, so that it does not count as silent.

        This has no effect before HELLO was heard in both directions. A connection that is silent for
        ``hello_max_age_s`` is dropped.
        """
        self._neighbors.on_heard(connection, now)

    def on_message(self, connection: int, body: Mapping[str, Any], opcode: str, now: float) -> list[Action]:
        if not self._neighbors.knows(connection):
            return []  # The routing core has closed the connection: messages that were on the way are ignored.
        self._neighbors.on_heard(connection, now)
        try:
            return self._on_parsed(connection, parse(opcode, body), now)
        except UnknownMessage as unknown:
            return self._ignore(connection, str(unknown))
        except ControlMessageError as error:
            refused = ControlMessageRefused(error.description)
            close = CloseConnection(connection, error.condition, error.description)
            return [refused, close, *self._lose(connection, error.description, now)]

    def advertise(
        self, added: Iterable[str], removed: Iterable[str], now: float, *, at_once: bool = False
    ) -> list[Action]:
        """Tell the neighbors by a MAU that this router advertises the keys ``added`` now, and ``removed`` no more.

        A key mostly says that this router has takers for an address. Without ``at_once`` the MAU may wait for further
        changes (`advertisements.py`).
        """
        self._advertising.change(added, removed, self._mobile.addresses(self._router_id))
        return self._tell_addresses(now, at_once=at_once) or self._check_last(now)

    def on_time(self, now: float) -> list[Action]:
        actions = self._neighbors.on_time(now) + self._follow_neighbors(now)
        actions += self._tell_link_states(now) + self._tell_addresses(now)
        if self._confirmations.is_due(now):
            actions += self._check(now)
        if self._is_challenged() and now >= self._reclaim_at:
            actions += self._reclaim(now)
        if self._next_ra is not None and now >= self._next_ra:
            self._next_ra = now + self._settings.ra_interval_s if self._used else None
            actions += [self._ra(connection) for connection in self._used.values()]
        for router in self._link_state.forget(now):
            self._confirmations.forget(router)
            actions += [RouterForgotten(router), *self._changed(router, self._mobile.forget(router))]
        return actions

    def next_deadline(self) -> float | None:
        deadlines = (
            self._neighbors.next_deadline(),
            self._advertising.next_deadline(),
            self._flooding.next_deadline(),
            self._link_state.next_deadline(),
            self._confirmations.next_deadline(),
            self._next_ra,
            self._reclaim_at if self._is_challenged() else None,
        )
        return min((at for at in deadlines if at is not None), default=None)

    # Neighbors

    def _on_parsed(self, connection: int, message: Message, now: float) -> list[Action]:
        if isinstance(message, Hello):
            return self._neighbors.on_hello(connection, message, now) + self._follow_neighbors(now)
        neighbor = self._neighbors.router_on(connection)
        if neighbor is None:
            raise ControlMessageError(f"unexpected {message.opcode} before HELLO was heard in both directions")
        match message:
            case Ra():
                return [] if message.checksum == self._database.checksum() else [self._ask(connection)]
            case Lsr():
                self._told.add(neighbor)
                self._flooding.on_told_all(neighbor)
                return [_send(connection, lacking) for lacking in self._database.answer(message, now)]
            case Lsu():
                return self._on_lsus(neighbor, (message,), now)
            case Lsus():
                return self._on_lsus(neighbor, message.several, now)
            case MauChanges() | MauAll():
                return self._on_mau(connection, neighbor, message, now)
            case Mar():
                return self._on_mar(connection, message)
            case VersionCheck():
                return self._on_check(message)
            case VersionConfirmation():
                return self._on_seen(message)
            case Ask() | Reach():
                return self._ignore(connection, f"unexpected {message.opcode} between interior routers")

    def _ignore(self, connection: int, reason: str) -> list[Action]:
        if connection in self._ignoring:
            return []
        self._ignoring.add(connection)
        return [ControlMessageRefused(reason)]

    def _lose(self, connection: int, reason: str, now: float) -> list[Action]:
        return self._neighbors.on_connection_lost(connection, reason) + self._follow_neighbors(now)

    def _follow_neighbors(self, now: float) -> list[Action]:
        """Send an LSR to each neighbor whose connection in use is new, and flood this router's changed link state.

        The link state changed if neighbors came or went, or their connections changed costs.
        """
        used = self._neighbors.connections
        if used is not self._used:
            before, self._used = self._used, used
            actions = self._ask_again(before, now)
        else:
            actions = []
        if self._neighbors.costs != self._link_state.records[self._router_id].peers:
            actions += self._originate(now)
        return actions

    def _ask_again(self, before: Mapping[str, int], now: float) -> list[Action]:
        self._told &= self._used.keys()
        self._ignoring = {connection for connection in self._ignoring if self._neighbors.knows(connection)}
        connections = set(self._used.values())
        self._awaited = {router: at for router, at in self._awaited.items() if at in connections}
        if self._next_ra is None:
            self._next_ra = now + self._settings.ra_interval_s
        actions: list[Action] = []
        for router, connection in self._used.items():
            if before.get(router) != connection:
                actions.append(self._ask(connection))
                if router in before:
                    # LSUs and MAUs may be lost with the replaced connection: an RA lets the neighbor compare checksums
                    # and ask for what it lacks.
                    actions.append(self._ra(connection))
        return actions

    # Link state

    def _originate(self, now: float) -> list[Action]:
        own = self._link_state.records[self._router_id]
        record = LinkStateRecord(self._instance, own.ls_seq + 1, dict(self._neighbors.costs))
        event = LinkStateChanged(record.ls_seq, record.peers)
        return [event, *self._accept_link_states({self._router_id: record}, None, now)]

    def _on_lsus(self, neighbor: str, lsus: Iterable[Lsu], now: float) -> list[Action]:
        actions: list[Action] = []
        news: dict[str, LinkStateRecord] = {}
        reborn: list[tuple[str, int, int]] = []
        for lsu in lsus:
            known, told = self._link_state.version(lsu.id), (lsu.instance, lsu.ls_seq)
            if told == known:
                self._flooding.on_same(lsu.id, neighbor)
            elif told > known and lsu.id == self._router_id:
                actions += self._on_challenge(lsu.instance, now)
            elif told > known:
                news[lsu.id] = LinkStateRecord(lsu.instance, lsu.ls_seq, lsu.peers)
                if lsu.instance > known[0]:
                    reborn.append((lsu.id, lsu.instance, known[0]))
        if news:
            actions += self._accept_link_states(news, neighbor, now)
        for each in reborn:
            actions += self._on_new_instance(*each)
        return actions

    def _accept_link_states(
        self, records: Mapping[str, LinkStateRecord], learnt_from: str | None, now: float
    ) -> list[Action]:
        before = self._link_state.records
        has_loss = any(record.is_worse_than(before.get(router)) for router, record in records.items())
        change = self._link_state.update(records, now)
        self._database.on_changed()
        for router in records:
            self._flooding.on_change(router, learnt_from)
        flood = self._tell_link_states(now, at_once=has_loss)
        return [*flood, change] if change else flood

    def _tell_link_states(self, now: float, *, at_once: bool = False) -> list[Action]:
        told = self._flooding.take((router for router in self._used if router in self._told), now, at_once=at_once)
        sent: dict[tuple[str, ...], SendControl] = {}
        actions: list[Action] = []
        for neighbor, routers in told.items():
            connection, key = self._used[neighbor], tuple(routers)
            if key not in sent:
                sent[key] = _send(connection, self._database.link_states(key))
            actions.append(replace(sent[key], connection=connection))
        return actions

    def _on_new_instance(self, router: str, instance: int, before: int) -> list[Action]:
        """Drop the addresses that an earlier instance of ``router`` advertised, since it runs as ``instance`` now.

        ``before``: the earlier instance, whose end is logged as a restart; 0 for a router that is new here.
        """
        event: list[Action] = [RouterRestarted(router, instance)] if before else []
        if self._mobile.version(router) < (instance, 0):
            return event + self._changed(router, self._mobile.replace(MauAll(router, instance, 0, ())))
        return event

    # Addresses

    def _tell_addresses(self, now: float, *, at_once: bool = False) -> list[Action]:
        told = self._advertising.take(now, at_once=at_once)
        if told is None:
            return []
        _, seq = self._mobile.version(self._router_id)
        mau = MauChanges(self._router_id, self._instance, seq, seq + 1, *told)
        self._mobile.apply(mau)
        self._database.on_changed()
        return self._flood(mau, None, now) + self._check(now)

    def _on_mau(self, connection: int, neighbor: str, mau: MauChanges | MauAll, now: float) -> list[Action]:
        if isinstance(mau, MauAll):
            self._awaited.pop(mau.id, None)
        stored = self._mobile.version(mau.id)
        # The addresses of a router without link state are ignored: nothing would ever delete them.
        if (mau.instance, mau.mobile_seq) <= stored or mau.id not in self._link_state.records:
            return []
        if mau.id == self._router_id:
            return self._on_challenge(mau.instance, now)
        if isinstance(mau, MauAll):
            return self._replace_addresses(neighbor, mau, stored, now)
        if self._mobile.follows(mau):
            return self._flood(mau, neighbor, now) + self._changed(mau.id, self._mobile.apply(mau))
        return self._ask_for_all(connection, mau.id, stored)

    def _replace_addresses(self, neighbor: str, mau: MauAll, stored: tuple[int, int], now: float) -> list[Action]:
        changes = self._mobile.replace(mau)
        instance, seq = stored
        if mau.instance != instance:
            return self._flood(mau, neighbor, now) + self._changed(mau.id, changes)
        added, removed = tuple(sorted(changes.added)), tuple(sorted(changes.removed))
        news = MauChanges(mau.id, instance, seq, mau.mobile_seq, added, removed)
        return self._flood(news, neighbor, now) + self._changed(mau.id, changes)

    def _ask_for_all(self, connection: int, router: str, stored: tuple[int, int]) -> list[Action]:
        if router in self._awaited:
            return []
        self._awaited[router] = connection
        mar = Mar(self._router_id, router, *stored)
        return [_send(connection, mar)]

    def _on_mar(self, connection: int, mar: Mar) -> list[Action]:
        if self._mobile.version(mar.router) <= (mar.instance, mar.have_seq):
            return []
        return [_send(connection, self._database.all_addresses(mar.router))]

    def _changed(self, router: str, changes: Changes) -> list[Action]:
        self._database.on_changed()
        return [AddressesChanged(router, changes.added, changes.removed)] if changes else []

    # Methods about confirmations: are a router's addresses in effect at the others?

    def want_confirmed(self, now: float) -> tuple[Version, list[Action]]:
        """Ask all routers in reach to confirm the addresses that this router advertises by now.

        Return the version of these addresses for `is_confirmed`. The routers are asked as soon as the version is sent.
        """
        instance, seq = self._mobile.version(self._router_id)
        version = instance, seq + (self._advertising.next_deadline() is not None)
        if self._confirmations.is_asked(version):
            return version, []
        self._confirmations.want(version)
        return version, self._check(now)

    def is_confirmed(self, version: Version) -> bool:
        """Say whether ``version`` of this router's addresses is in effect at all routers that are in reach now."""
        sent = self._sent(version)
        return sent is not None and not self._lacking(sent)

    def _sent(self, version: Version) -> Version | None:
        """Return ``version`` if it was sent, or the version sent last if none follows; None if it waits to be sent."""
        own = self._mobile.version(self._router_id)
        if own < version and self._advertising.next_deadline() is not None:
            return None
        return min(own, version)

    def _lacking(self, version: Version) -> list[str]:
        others = [router for router in self._link_state.reachable if router != self._router_id]
        instances = {router: self._link_state.version(router)[0] for router in others}
        return self._confirmations.lacking(others, instances, version)

    def _check(self, now: float) -> list[Action]:
        wanted = self._confirmations.wanted
        sent = self._sent(wanted) if wanted is not None else None
        if sent is None:
            return []
        lacking = self._lacking(sent)
        if not lacking:
            self._confirmations.rest()
            return []
        self._confirmations.on_asked(sent, now)
        version = self._mobile.version(self._router_id)
        return self._pass_on_check(VersionCheck(self._router_id, *version, tuple(sorted(lacking))))

    def _check_last(self, now: float) -> list[Action]:
        """Ask for the version sent last if none follows, since changes undid those that waited to be sent."""
        wanted, own = self._confirmations.wanted, self._mobile.version(self._router_id)
        return self._check(now) if wanted is not None and wanted > own else []

    def _pass_on_check(self, check: VersionCheck) -> list[Action]:
        """Send ``check`` to the next routers on the paths to the routers that it is for; leave out those of no path."""
        by_hop: dict[str, list[str]] = {}
        for router in check.to:
            path = self.path(router)
            if path is not None and len(path) > 1:
                by_hop.setdefault(path[1], []).append(router)
        return [
            _send(self._used[hop], replace(check, to=tuple(routers)))
            for hop, routers in by_hop.items()
            if hop in self._used
        ]

    def _on_check(self, check: VersionCheck) -> list[Action]:
        others = tuple(router for router in check.to if router not in (self._router_id, check.id))
        actions: list[Action] = []
        if self._router_id in check.to and check.id != self._router_id:
            actions.append(ConfirmationRequest(check.id, (check.instance, check.mobile_seq)))
        if others and check.hops > 0:
            actions += self._pass_on_check(replace(check, to=others, hops=check.hops - 1))
        return actions

    def has_seen(self, router: str, version: Version) -> bool:
        """Say whether this router has ``version``, or a newer one, of the addresses that ``router`` advertises."""
        return self._mobile.version(router) >= version

    def confirm(self, router: str, version: Version) -> list[Action]:
        """Tell ``router`` that ``version`` of its addresses is in effect here."""
        return self._pass_on_seen(VersionConfirmation(self._router_id, self._instance, router, *version))

    def _pass_on_seen(self, seen: VersionConfirmation) -> list[Action]:
        path = self.path(seen.router)
        if path is None or len(path) < 2 or path[1] not in self._used:
            return []
        return [_send(self._used[path[1]], seen)]

    def _on_seen(self, seen: VersionConfirmation) -> list[Action]:
        if seen.router == self._router_id:
            self._confirmations.on_seen(seen.id, seen.instance, (seen.seen_instance, seen.seen_seq))
            return []
        return self._pass_on_seen(replace(seen, hops=seen.hops - 1)) if seen.hops > 0 else []

    # Methods about other routers that use this router's id.

    def _is_challenged(self) -> bool:
        return self._challenger >= self._instance

    def _on_challenge(self, instance: int, now: float) -> list[Action]:
        """Reclaim this router's id, since a peer spreads newer state, of ``instance``, under it.

        The newer state is left over from an earlier life of this router, or comes from a second router with the same
        id. To reclaim the id, this router floods its own state under a higher instance. State of an earlier life does
        not come back then, but a second router reclaims the id, too. So this router reclaims the id at most once in
        ``ra_interval_s``, and reports newer state that comes sooner as `DuplicateRouterId`.
        """
        if instance <= self._challenger:
            return []
        self._challenger = instance
        if now >= self._reclaim_at:
            return self._reclaim(now)
        return [DuplicateRouterId(self._router_id, self._instance, instance)]

    def _reclaim(self, now: float) -> list[Action]:
        self._reclaim_at = now + self._settings.ra_interval_s
        self._instance = self._challenger + 1
        _, seq = self._mobile.version(self._router_id)
        mau = replace(self._database.all_addresses(self._router_id), instance=self._instance, mobile_seq=seq + 1)
        self._mobile.replace(mau)
        return self._originate(now) + self._flood(mau, None, now)

    # Messages

    def _flood(self, mau: MauChanges | MauAll, learnt_from: str | None, now: float) -> list[Action]:
        # A neighbor keeps no addresses of a router whose link state is missing there: the link state of the MAU's
        # router is sent first if it waits to be flooded.
        actions = self._tell_link_states(now, at_once=True) if mau.id in self._flooding else []
        targets = [at for router, at in self._used.items() if router in self._told and router != learnt_from]
        if not targets:
            return actions
        body = mau.to_map()
        return actions + [SendControl(connection, mau.opcode, body) for connection in targets]

    def _ask(self, connection: int) -> SendControl:
        return _send(connection, self._database.request())

    def _ra(self, connection: int) -> SendControl:
        return _send(
            connection, Ra(self._router_id, self._database.versions(self._router_id), self._database.checksum())
        )

    # Queries

    @property
    def epoch(self) -> int:
        """A counter, raised whenever a path may have changed: paths computed at a lower count are out of date."""
        return self._link_state.epoch

    @property
    def neighbors(self) -> Mapping[str, int]:
        """A map from each neighbor to the number of the connection in use to the neighbor."""
        return self._neighbors.connections

    def path(self, target: str) -> spf.Path | None:
        """Return the routers from this router to ``target``, both included; None if ``target`` is out of reach."""
        return self._shortest().paths.get(target)

    def cost_along(self, path: spf.Path) -> int | None:
        """Return the present cost of ``path``; None if a connection between routers of the path is gone."""
        return self._link_state.cost_along(path)

    def cost_to(self, target: str) -> int | None:
        return self._shortest().costs.get(target)

    def routers_with(self, key: str) -> frozenset[str]:
        """Return the routers in reach, other than this router, that advertise the routing key ``key``."""
        holders = self._mobile.holders(key)
        if not holders:
            return _NOBODY
        reachable = self._link_state.reachable
        return frozenset(r for r in holders if r in reachable and r != self._router_id)

    def is_advertised(self, key: str) -> bool:
        """Say whether another router, in reach or not, advertises the routing key ``key``."""
        return any(router != self._router_id for router in self._mobile.holders(key))

    def tree(self, targets: Iterable[str]) -> Mapping[str, spf.Branch]:
        """Return the multicast tree from this router to ``targets``: next router -> the branch that begins there.

        Targets out of reach are left out.
        """
        return spf.tree(self._shortest().paths, targets)

    def _shortest(self) -> spf.ShortestPaths:
        if self._paths is None or self._paths[0] != self.epoch:
            known = self._link_state
            paths = spf.only(self._router_id) if known.is_alone else spf.shortest_paths(known.graph, self._router_id)
            self._paths = (self.epoch, paths)
        return self._paths[1]

    def edges(self) -> dict[tuple[str, str], int]:
        """Return the connections between routers in reach (the graph's edges): two router ids in order -> cost."""
        return self._edges(self._link_state.reachable)

    def _edges(self, routers: Iterable[str]) -> dict[tuple[str, str], int]:
        if self._link_state.is_alone:
            return {}
        edges = self._link_state.graph.edges(routers, data="cost")
        return {(min(one, other), max(one, other)): cost for one, other, cost in edges}

    def snapshot(self) -> RoutingSnapshot:
        costs = self._neighbors.costs
        return RoutingSnapshot(
            router_id=self._router_id,
            instance=self._instance,
            neighbors={router: NeighborSnapshot(at, costs[router]) for router, at in self.neighbors.items()},
            routers={router: self._router_snapshot(router) for router in sorted(self._link_state.records)},
            edges=self._edges(self._link_state.records),
        )

    def _router_snapshot(self, router: str) -> RouterSnapshot:
        peers = dict(self._link_state.records[router].peers)
        addresses = frozenset(self._mobile.addresses(router))
        return RouterSnapshot(
            *self._database.versions(router), peers, addresses, self.path(router), self.cost_to(router)
        )


def _send(connection: int, message: Message) -> SendControl:
    return SendControl(connection, message.opcode, message.to_map())
