"""A random life over sockets: real processes are killed, stopped and frozen while clients come, work and vanish.

`python -m mesh_tests.faults.life SECONDS --seed N --report FILE` leads one life, and writes what came of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from mesh_tests.faults.life_mesh import LifeMesh
from mesh_tests.fuzz.dialogues import dialogue
from mesh_tests.fuzz.peers import hold
from mesh_tests.sim.broad import BroadWalk

PAUSES_S = (0.0, 0.002, 0.02, 0.1)
FREEZES_S = (0.2, 1.0, 4.0)
LEFT_S = 30.0
VANISHING = 5
"""Raw clients that come at once."""


class Life(BroadWalk):
    """The acts of the broad walk that real processes have, and raw clients that end at any byte of a dialogue."""

    mesh: Any
    PAUSES_S = PAUSES_S

    def make_mesh(self, folder: Path) -> Any:
        return LifeMesh(self.topology(), folder)

    def topology(self) -> dict[str, Any]:
        model = super().topology()
        model.pop("users")
        for router in model["routers"].values():
            router["listeners"] = [{"authentication": "none"}]
        return {**model, "mesh": "life"}

    def acts(self) -> list[tuple[int, Callable[[], None]]]:
        simulated = {self.cut_trunk, self.slow_trunk, self.silence_trunk, self.try_without_right, self.heal}
        real = [(weight, act) for weight, act in super().acts() if act not in simulated]
        return [*real, (6, self.vanish), (1, self.freeze_node), (2, self.heal)]

    def vanish(self) -> None:
        """Raw clients end a well-formed dialogue at any byte, in every way, while it goes on elsewhere."""
        said = []
        for _ in range(VANISHING):
            seed = self.random.randrange(1 << 30)
            whole = dialogue(seed, is_hostile=False)
            number = self.random.randrange(len(whole.chunks))
            last = whole.chunks[number]
            cut = last[: self.random.randrange(len(last) + 1)]
            said.append(replace(whole, chunks=(*whole.chunks[:number], cut)))
        ports = [self.mesh.process.port(self.random.choice(sorted(self.mesh.topology.routers))) for _ in said]
        thread = threading.Thread(target=lambda: asyncio.run(_hold_all(list(zip(ports, said, strict=True)))))
        thread.start()
        while thread.is_alive():
            self.mesh.run(0.01)

    def freeze_node(self) -> None:
        names = sorted({*self.mesh.routers, *self.mesh.brokers})
        if names:
            self.mesh.freeze(self.random.choice(names), self.random.choice(FREEZES_S))

    def kill_router(self) -> None:
        self._signal(self.mesh.routers, signal.SIGKILL)

    def stop_router(self) -> None:
        self._signal(self.mesh.routers, signal.SIGTERM)

    def kill_broker(self) -> None:
        self._signal(self.mesh.brokers, signal.SIGKILL)

    def stop_broker(self) -> None:
        self._signal(self.mesh.brokers, signal.SIGTERM)

    def _signal(self, nodes: dict[str, Any], number: signal.Signals) -> None:
        if len(nodes) > 1:
            self.mesh.signal(self.random.choice(sorted(nodes)), number)

    def heal(self) -> None:
        self.mesh.heal()

    def live_for(self, seconds: float) -> dict[str, int]:
        """Do random things for so long, then check that nothing is lost, stuck or left behind."""
        end, steps = time.monotonic() + seconds, 0
        self.mesh.run(1)
        before = self.descriptors()
        while time.monotonic() < end:
            self.step()
            steps += 1
        self.live(0)
        self.mesh.leave()
        self.mesh.wait_left(LEFT_S)
        grown = {name: count for name, count in self.descriptors().items() if count > before[name] + 2}
        assert not grown, f"descriptors {before} became {grown}"
        accepted = sum(len(found) for found in self._ledger().accepted.values())
        return {"steps": steps, "sent": len(self.sent), "accepted": accepted}

    def leftovers(self) -> list[str]:
        """Nobody looks into processes: their descriptors tell what they keep."""
        return []

    def descriptors(self) -> dict[str, int]:
        return {name: len(list(Path(f"/proc/{pid}/fd").iterdir())) for name, pid in self.mesh.pids().items()}


async def _hold_all(said: list[tuple[int, Any]]) -> None:
    await asyncio.gather(*(hold(port, each) for port, each in said))


def lead(seed: int, seconds: float, folder: Path) -> dict[str, int]:
    """One life, to its end. Raises AssertionError for what did not hold."""
    life = Life(seed, folder)
    try:
        counts = life.live_for(seconds)
    except BaseException:
        (folder / "trace").write_text("\n".join(life.trace))
        life.mesh.close()
        raise
    life.mesh.close()
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--report", type=Path, required=True)
    given = parser.parse_args()
    found: dict[str, Any] = {"seed": given.seed, "seconds": given.seconds, "state": "running"}
    given.report.write_text(json.dumps(found))
    folder = Path(tempfile.mkdtemp(prefix="amqpmesh-life-"))
    try:
        found |= {"state": "passed", **lead(given.seed, given.seconds, folder)}
    except Exception:  # noqa: BLE001 - the report tells it
        found |= {"state": "failed", "why": traceback.format_exc()[-4000:], "kept": str(folder)}
    given.report.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
