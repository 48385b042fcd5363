"""A disk that is full: no file of the broker grows. The kernel's limit on the size of files does that to one process
without filling the disk of all others, and needs no privilege.
"""

from __future__ import annotations

from pathlib import Path

from mesh.drills.faults.injection import Injection
from mesh.drills.faults.processes import BACK_S, holds_soon
from mesh.drills.leases import apply as remedy
from mesh.drills.leases import lift_file_limit, limit_files
from mesh.drills.model import DiskFull
from mesh.drills.stage import Stage
from mesh.failure import CommandFailed
from mesh.log_tail import first_cause, size_bytes
from mesh.running import node_pid, supervisor_pid
from mesh.workdir import SUPERVISOR

SPARE_BYTES = 64 * 1024
"""What the log of a broker that starts again needs, and no more messages than that."""


class FullDisk(Injection):
    def __init__(self, fault: DiskFull, stage: Stage) -> None:
        super().__init__()
        self._broker = fault.broker
        self._stage = stage
        self._leases: list[int] = []
        self._log = stage.workdir.log_file(fault.broker)
        self._log_bytes = 0

    async def apply(self) -> None:
        # Of its supervisor too, from which a broker that is started again has its limits.
        pids = [node_pid(self._stage.workdir, self._broker), supervisor_pid(self._stage.workdir)]
        if None in pids:
            raise CommandFailed(f"{self._broker} does not run: there is no disk to fill")
        self._log_bytes = size_bytes(self._log)
        limit = max(self._largest(), size_bytes(self._stage.workdir.log_file(SUPERVISOR))) + SPARE_BYTES
        for pid in pids:
            assert pid is not None
            self._leases.append(self._stage.leases.grant(lift_file_limit(pid), 3600))
            limit_files(pid, limit)
        self.say(f"no file of {self._broker} grows beyond {limit:,} bytes")

    def _largest(self) -> int:
        data = self._stage.topology.brokers[self._broker].data
        assert data is not None
        folder: Path = self._stage.topology.locate(data)
        return max((file.stat().st_size for file in folder.rglob("*") if file.is_file()), default=0)

    async def heal(self) -> None:
        cause = first_cause(self._log, self._log_bytes)
        if cause is not None:
            self.bit(f"{self._broker}: {cause}")
        for lease in self._leases:
            self._stage.leases.heal(lease)
        # One that was started meanwhile has the limit of its own.
        pid = node_pid(self._stage.workdir, self._broker)
        if pid is not None:
            remedy(lift_file_limit(pid))
        if not await holds_soon(lambda: node_pid(self._stage.workdir, self._broker) is not None, BACK_S):
            self.say(f"{self._broker} did not come back within {BACK_S:g} s")
