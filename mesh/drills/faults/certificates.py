"""The fault of an expired certificate: the node restarts with this certificate, and other nodes refuse its
connections.
"""

from __future__ import annotations

import os
import re
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mesh.certs import renew
from mesh.deploy import log_tail
from mesh.deploy.node_kinds import node_names
from mesh.deploy.running_processes import node_pid
from mesh.drills.faults.processes import NodeInjection, holds_soon

LONG_AGO = timedelta(days=400)
"""Age of the expired certificate; certificates are valid for 365 days."""
NOTICED_S = 30.0
EXPIRED = re.compile("certificate (has )?expired")
"""OpenSSL's error for an expired certificate, in the log of either end.

The word `expired` alone would also match the event of a silent neighbor.
"""


class ExpiredCertificate(NodeInjection):
    async def apply(self) -> None:
        renew(self.stage.workdir.pki, self.node, now=datetime.now(UTC) - LONG_AGO)
        self._log_ends = {log: log_tail.end_of(log) for log in self._logs()}
        await self._start_again()
        if await holds_soon(self._is_refused, NOTICED_S):
            self.bit(f"the other nodes refuse {self.node}: its certificate has expired")

    async def heal(self) -> None:
        renew(self.stage.workdir.pki, self.node)
        await self._start_again()
        await self.wait_back()

    async def _start_again(self) -> None:
        self.old_pid = node_pid(self.stage.workdir, self.node) or 0
        if self.old_pid:
            os.kill(self.old_pid, signal.SIGTERM)

    def _logs(self) -> list[Path]:
        return [self.stage.workdir.log_file(name) for name in node_names(self.stage.topology)]

    def _is_refused(self) -> bool:
        return any(EXPIRED.search(log_tail.text_since(log, since)) for log, since in self._log_ends.items())
