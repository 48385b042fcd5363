"""Faults that are shell commands of the user: one command injects the fault; another, if given, heals the fault."""

from __future__ import annotations

import asyncio

from mesh.drills.faults.injection import Injection
from mesh.drills.leases import COMMAND_S, Leases, run_command
from mesh.drills.model import Command
from mesh.terminal.failure import CommandFailed


class CommandInjection(Injection):
    def __init__(self, fault: Command, leases: Leases) -> None:
        super().__init__()
        self._fault = fault
        self._leases = leases
        self._lease = 0

    async def apply(self) -> None:
        if self._fault.heal is not None:
            self._lease = self._leases.grant(run_command(self._fault.heal), (self._fault.for_ or 0) + 3600)
        code = await shell(self._fault.run)
        if code != 0:
            raise CommandFailed(
                f"the command of the fault, {self._fault.run}, ended with exit code {code}, expected 0: the fault may "
                "not be in effect"
            )
        self.say(f"{self._fault.run}: exit code 0")
        if self._fault.proof is not None and await shell(self._fault.proof) == 0:
            self.bit(f"{self._fault.proof}: exit code 0")

    async def heal(self) -> None:
        if self._fault.heal is not None:
            code = await shell(self._fault.heal)
            self._leases.give_back(self._lease)
            (self.say if code == 0 else self.stays)(f"{self._fault.heal}: exit code {code}")


async def shell(command: str) -> int:
    """Run a shell command and return its exit code; after ``COMMAND_S`` seconds, kill the shell and return 124."""
    process = await asyncio.create_subprocess_shell(command, stdin=asyncio.subprocess.DEVNULL)
    try:
        async with asyncio.timeout(COMMAND_S):
            return await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
        return 124
