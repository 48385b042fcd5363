"""Faults of a link between two routers (cut, silent, slow, lossy), injected by the drill's proxy in this link."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mesh.drills.faults.injection import Injection
from mesh.drills.mesh_copy import MeshCopy
from mesh.drills.model import Direction, Flap, Latency, LinkFault, Loss, Slow
from mesh.drills.proxy import ProxyDirection


class LinkInjection(Injection):
    def __init__(self, fault: LinkFault, stage: MeshCopy) -> None:
        super().__init__()
        self.fault = fault
        link = frozenset(fault.link)
        self.proxy = stage.proxies[link]
        self._is_turned = stage.dialers[link] != fault.link[0]

    @property
    def lanes(self) -> Sequence[ProxyDirection]:
        """Return the directions of the proxy that the fault concerns.

        The proxy's direction `forth` runs from the router that dials, the fault's `forth` from the router named first;
        the two are swapped if these routers differ.
        """
        forth, back = (self.proxy.back, self.proxy.forth) if self._is_turned else (self.proxy.forth, self.proxy.back)
        return {Direction.BOTH: (forth, back), Direction.FORTH: (forth,), Direction.BACK: (back,)}[self.fault.direction]


class CutLink(LinkInjection):
    async def apply(self) -> None:
        self.proxy.is_cut = True
        self._reset()

    async def heal(self) -> None:
        self.proxy.is_cut = False
        if self.proxy.refused_count:
            self.say(f"{self.proxy.refused_count} attempts to connect were refused")

    def _reset(self) -> None:
        if count := self.proxy.reset():
            self.bit(f"{count} connection{'s' if count != 1 else ''} reset")


class ResetLink(CutLink):
    async def apply(self) -> None:
        self._reset()


class FlappingLink(CutLink):
    _task: asyncio.Task[None] | None = None

    async def apply(self) -> None:
        self._task = asyncio.create_task(self._flap())

    async def _flap(self) -> None:
        assert isinstance(self.fault, Flap)
        while True:
            self.proxy.is_cut = True
            self._reset()
            await asyncio.sleep(self.fault.down)
            self.proxy.is_cut = False
            await asyncio.sleep(self.fault.up)

    async def heal(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await super().heal()


class SilentLink(LinkInjection):
    async def apply(self) -> None:
        self._before = sum(lane.held_bytes for lane in self.lanes)
        for lane in self.lanes:
            lane.is_open.clear()

    async def heal(self) -> None:
        held = sum(lane.held_bytes for lane in self.lanes) - self._before
        if held:
            self.bit(f"{held:,} bytes were held back")
        for lane in self.lanes:
            lane.is_open.set()


class LateLink(LinkInjection):
    """Adds latency, or limits the bandwidth; the evidence of its effect is the number of chunks that were delayed."""

    async def apply(self) -> None:
        self._before = sum(lane.delayed for lane in self.lanes)
        for lane in self.lanes:
            if isinstance(self.fault, Latency):
                lane.latency_s, lane.jitter_s = self.fault.latency, self.fault.jitter
            elif isinstance(self.fault, Slow):
                lane.rate_bytes_per_s = self.fault.rate

    async def heal(self) -> None:
        delayed = sum(lane.delayed for lane in self.lanes) - self._before
        if delayed:
            self.bit(f"{delayed:,} writes were held up")
        for lane in self.lanes:
            if isinstance(self.fault, Latency):
                lane.latency_s = lane.jitter_s = 0.0
            else:
                lane.rate_bytes_per_s = 0.0


class LossyLink(LinkInjection):
    async def apply(self) -> None:
        assert isinstance(self.fault, Loss)
        self._before = sum(lane.lost_packets for lane in self.lanes)
        for lane in self.lanes:
            lane.loss = self.fault.loss

    async def heal(self) -> None:
        lost = sum(lane.lost_packets for lane in self.lanes) - self._before
        if lost:
            self.bit(f"{lost:,} packets had to be sent again")
        for lane in self.lanes:
            lane.loss = 0.0


LINK_INJECTIONS: dict[str, type[LinkInjection]] = {
    "cut": CutLink,
    "reset": ResetLink,
    "flap": FlappingLink,
    "blackhole": SilentLink,
    "latency": LateLink,
    "bandwidth": LateLink,
    "loss": LossyLink,
}
