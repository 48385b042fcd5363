"""The fault of a full disk: the broker cannot extend any file beyond a limit. The limit is 64 KiB above the size of the
larger one of two logs, the broker's and the supervisor's.

The kernel's limit on file sizes concerns one process only, leaves the disk free for all others, and needs no privilege.
[setrlimit(2)]
"""

from __future__ import annotations

from mesh.deploy.log_tail import LogPosition, end_of, first_cause, size_bytes
from mesh.deploy.running_processes import living, node_pid, supervisor_pid
from mesh.deploy.workdir import SUPERVISOR
from mesh.drills.faults.injection import Injection
from mesh.drills.faults.processes import BACK_S, answers_soon
from mesh.drills.leases import apply as remedy
from mesh.drills.leases import lift_file_limit, limit_files
from mesh.drills.mesh_copy import MeshCopy
from mesh.drills.model import DiskFull
from mesh.terminal.failure import CommandFailed

SPARE_BYTES = 64 * 1024
"""Reserve in bytes for the log of a restarted broker; the store of a broker under load soon exceeds the limit."""


class FullDisk(Injection):
    def __init__(self, fault: DiskFull, stage: MeshCopy) -> None:
        super().__init__()
        self._broker = fault.broker
        self._lasts_s = fault.for_ or 0.0
        self._stage = stage
        self._leases: list[int] = []
        self._log = stage.workdir.log_file(fault.broker)
        self._log_end: LogPosition | None = None

    async def apply(self) -> None:
        # The supervisor gets the limit on file sizes, too, because a broker that the supervisor starts again inherits
        # its limit.
        pids = [node_pid(self._stage.workdir, self._broker), supervisor_pid(self._stage.workdir)]
        if None in pids:
            raise CommandFailed(
                f"{self._broker}, or the supervisor of the mesh, does not run: expected both to run for a full disk"
            )
        self._log_end = end_of(self._log)
        logs = (self._log, self._stage.workdir.log_file(SUPERVISOR))
        limit = max(size_bytes(log) for log in logs) + SPARE_BYTES
        for pid in pids:
            assert pid is not None
            self._leases.append(self._stage.leases.grant(lift_file_limit(pid), self._lasts_s + 3600))
            limit_files(pid, limit)
        self.say(f"{self._broker} can write no file beyond {limit:,} bytes")

    async def heal(self) -> None:
        cause = first_cause(self._log, self._log_end)
        if cause is not None:
            self.bit(f"{self._broker}: {cause}")
        for lease in self._leases:
            self._stage.leases.heal(lease)
        # The limit on file sizes is lifted for all processes, because those that were started during the fault have
        # inherited it.
        for pid in living(self._stage.workdir).values():
            remedy(lift_file_limit(pid))
        if not await answers_soon(self._stage.workdir, self._broker):
            self.stays(f"{self._broker} did not come back within {BACK_S:g} s")
