"""Follows all rings of one mesh on this host: finds them, reads them, and keeps the model of the host up to date."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from mesh.watch.host_model import HostModel, NodeRecords, state_of
from mesh.watch.ring_follower import RingFollower, RingUnreadable
from mesh.watch.slots import read_slots
from mesh.watch.states import LOST, ObservedNode

SUFFIX: Final = ".ring"
RELIST_S: Final = 5.0
"""A node that has not listed what it has, though asked, is asked again after so long."""

Tell = Callable[[str], None]
"""Takes a sentence for the observer's log."""


class HostRings:
    """The rings in the folder ``rings``, and what their records make of ``host``.

    ``relist`` is called with the name of a node whose earlier records are gone, so that the node lists its connections,
    links and queues again; it is called each RELIST_S until the list has come. ``tell`` gets a sentence about a ring
    that cannot be read, once for each. ``names``: the nodes whose rings are followed; None for all nodes. The folder
    may have rings of nodes that an earlier topology had.
    """

    def __init__(
        self,
        rings: Path,
        host: HostModel,
        relist: Callable[[str], None],
        tell: Tell,
        names: Collection[str] | None = None,
    ) -> None:
        self._folder, self._host, self._relist, self._tell = rings, host, relist, tell
        self._names = frozenset(names) if names is not None else None
        self._followed: dict[Path, _FollowedRing] = {}
        self._has_caught_up = False
        """Whether all rings were once read to their ends."""
        self._seen: dict[str, set[Path]] = {}
        """By the name of a node, the rings that are or were followed, are older than those, or cannot be read."""

    def step(self) -> bool:
        """Read what the nodes wrote since the last step; return whether more waits to be read.

        A step reads at most AT_ONCE_SLOTS of each ring, some 40 ms of work for a ring that is full.
        """
        self._host.on_time(time.time(), is_caught_up=False)
        self._find()
        has_more = False
        for path, each in list(self._followed.items()):
            has_more |= each.step()
            if each.is_over:
                each.close()
                del self._followed[path]
        self._host.on_time(time.time(), is_caught_up=not has_more and self._has_caught_up)
        if not has_more and not self._has_caught_up:
            self._has_caught_up = True
            # The rings had hours of traffic, perhaps.
            self._host.skip_rates()
        return has_more

    def close(self) -> None:
        for each in self._followed.values():
            each.close()
        self._followed.clear()

    def _find(self) -> None:
        """Follow the rings of runs that began since the last step; of a node that is new here, the last run's only."""
        runs: dict[str, list[tuple[int, Path]]] = {}
        for path in self._folder.glob("*" + SUFFIX):
            if (run := _run_of(path)) is not None:
                runs.setdefault(_node_of(path), []).append((run, path))
        for name, found in runs.items():
            if self._names is not None and name not in self._names:
                continue
            found.sort()
            paths = [path for _, path in found]
            seen = self._seen.get(name)
            if seen is None:
                seen = self._seen[name] = set(paths[:-1])
            # A later run may have an earlier time: the clock of the host may have been set back.
            seen &= set(paths)
            for path in paths:
                if path not in seen and self._follow(path):
                    seen.add(path)

    def _follow(self, path: Path) -> bool:
        """Begin to follow a ring; return False if it has to be tried again, as without a free descriptor."""
        try:
            ring = RingFollower(path)
        except FileNotFoundError:
            return True  # The writer has just removed the ring.
        except RingUnreadable as error:
            self._tell(f"a ring cannot be read: {error}")
            return True
        except OSError as error:
            self._tell(f"a ring cannot be read now: {error}")
            return False
        node = self._host.node(ring.node.name)
        for earlier in list(self._followed.values()):
            if earlier.node is node:
                earlier.finish()
        self._followed[path] = _FollowedRing(ring, self._host, node, self._relist)
        return True


class _FollowedRing:
    """A ring and the records of its run."""

    def __init__(self, ring: RingFollower, host: HostModel, node: ObservedNode, relist: Callable[[str], None]) -> None:
        self._ring, self._host, self.node, self._relist = ring, host, node, relist
        self._records = NodeRecords(host, node, ring.node.run_us / 1e6)
        self._records.set_role(ring.node.role)
        node.version, node.topology = ring.node.version, ring.node.topology
        self._dropped = 0
        self._has_read = False
        self._asked_at = -RELIST_S
        self._rest = b""
        self.is_over = False
        """Whether the run is over and all its records were read."""

    def step(self) -> bool:
        if self.is_over:
            return False
        # The lock is looked at before the slots: what the node wrote before it ended is read then.
        is_abandoned = self._ring.is_abandoned()
        read = self._ring.read()
        if read.missed:
            self._rest = b""
            self.node.records_missed += read.missed
            self._records.on_missed()
        elif not self._has_read:
            # All that the node did in this run was counted.
            self.node.counted_since = min(self.node.counted_since, self._ring.node.run_us / 1e6)
        self._has_read = True
        # Before the first second of a run the ring has no clock.
        clock_us = read.clock_us or time.time_ns() // 1000 - time.monotonic_ns() // 1000
        records = read_slots(self._rest + read.data, clock_us)
        self._rest = records.rest
        self.node.records_missed += records.unreadable
        self.node.records_dropped += max(0, read.dropped - self._dropped)
        self._dropped = read.dropped
        self._records.add(records)
        self._records.on_time()
        if not is_abandoned:
            self._ask_for_list()
        self._set_age(read.clock_us, is_abandoned=is_abandoned)
        self.node.state = state_of(self.node.age_s, is_abandoned=is_abandoned, cause=self.node.cause)
        if is_abandoned and read.is_last:
            self._records.end(self.node.state)
            self.is_over = True
        return not read.is_last

    def _ask_for_list(self) -> None:
        if self._records.wants_list and time.monotonic() - self._asked_at >= RELIST_S:
            self._asked_at = time.monotonic()
            self._relist(self.node.name)

    def _set_age(self, clock_us: int, *, is_abandoned: bool) -> None:
        beat_us = self._ring.beat_us()
        if beat_us and not is_abandoned:
            age_s = time.monotonic() - beat_us / 1e6
        else:
            # The monotonic clock of a node that is gone may be that of an earlier start of the machine.
            age_s = time.time() - ((beat_us + clock_us) if beat_us else self._ring.node.run_us) / 1e6
        self.node.age_s = max(0.0, age_s)
        self.node.beat_at = time.time() - self.node.age_s

    def finish(self) -> None:
        """Read the ring to its end, since a later run of the node has begun."""
        while not self.is_over and self.step():
            pass
        if not self.is_over:
            self._records.end(LOST)
            self.is_over = True

    def close(self) -> None:
        with suppress(BufferError):
            self._ring.close()


def _node_of(path: Path) -> str:
    return path.name.rsplit(".", 2)[0]


def _run_of(path: Path) -> int | None:
    parts = path.name.rsplit(".", 2)
    return int(parts[1]) if len(parts) == 3 and parts[1].isdecimal() else None
