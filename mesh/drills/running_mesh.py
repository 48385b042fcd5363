"""Runs a drill against a running mesh: the drill sends its own traffic, and a shell command of the user is the
fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mesh.client.connect import connected
from mesh.client.server import Server
from mesh.deploy.server_lookup import find_server
from mesh.drills.drill_file import DrillFile
from mesh.drills.judgement import baseline_failure
from mesh.drills.leases import Leases
from mesh.drills.model import Command, Load
from mesh.drills.plan import DrillFlow, DrillPlan, PlannedFault, spread
from mesh.drills.progress import DrillProgress
from mesh.drills.rehearsal import Rehearsal
from mesh.drills.rehearsal_result import RehearsalResult
from mesh.drills.report import Drawing
from mesh.drills.stop_signals import stopped_by_signals
from mesh.drills.traffic import CONNECT_S
from mesh.terminal.connection_options import ConnectionRequest


@dataclass(frozen=True, slots=True)
class RunningMesh:
    requests: tuple[ConnectionRequest, ...]
    """The server to use for each connection, in order: senders use the first server, receivers the last."""
    command: str
    heal: str | None
    proof: str | None
    lasts_s: float


async def rehearse_against(file: DrillFile, against: RunningMesh, progress: DrillProgress) -> RehearsalResult:
    servers = servers_of(against.requests)
    # A connection to each server is tried first, because a server that is unreachable, or refuses the login, fails here
    # at once, with its error; the drill's traffic would only try again and again.
    for server in servers.values():
        async with connected(server, CONNECT_S):
            pass
    stop = stopped_by_signals()
    with Leases() as leases:
        rehearsal = Rehearsal(plan_of(file, against, list(servers)), servers, None, leases, progress, stop)
        record = await rehearsal.run(lambda record: baseline_failure(file.drill, record))
    return RehearsalResult(record, file.drill.seed, Drawing(tuple(servers), (), ()))


def servers_of(requests: Sequence[ConnectionRequest]) -> dict[str, Server]:
    servers = [find_server(request) for request in requests]
    return {server.address: server for server in servers}


def plan_of(file: DrillFile, against: RunningMesh, servers: Sequence[str]) -> DrillPlan:
    """Make a plan with the user's command as its only fault, senders at the first server, and receivers at the last.

    The routers that the drill file names are ignored, since they belong to another mesh.
    """
    drill = file.drill
    fault = Command(run=against.command, heal=against.heal, proof=against.proof)
    faults = (PlannedFault("1", fault, 0.0, None, against.lasts_s),)
    flows = tuple(_flow(load, servers) for load in drill.steady_state.load)
    return DrillPlan(drill.baseline, faults, against.lasts_s, drill.cooldown, flows)


def _flow(load: Load, servers: Sequence[str]) -> DrillFlow:
    anywhere = load.model_copy(update={"from_": (), "to": ()})
    return spread(anywhere, load.type, servers[:1], servers[-1:])
