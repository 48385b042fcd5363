"""`amqpmesh simulate`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mesh.simulation.fault_kinds import KINDS
from mesh.terminal.options import is_typed, output_options, topology_option
from mesh.terminal.output import Output
from mesh.terminal.units import DURATION, RATE

if TYPE_CHECKING:
    from addressing.topology.model import Topology

DEGREE = 4


class FaultKinds(click.ParamType[tuple[str, ...]]):
    """A Click type: kinds of faults, separated by commas, or `none`."""

    name = "kinds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        kinds = tuple(part.strip() for part in str(value).split(",")) if value != "none" else ()
        if unknown := [kind for kind in kinds if kind not in KINDS]:
            self.fail(f"{unknown[0]!r} is not a valid fault: expected some of {','.join(KINDS)}, or none", param, ctx)
        return kinds


@click.command("simulate", context_settings={"show_default": True})
@topology_option
@click.option(
    "--routers", type=click.IntRange(2, 2000), help="Simulate a random mesh of N routers, in place of a topology."
)
@click.option(
    "--degree", type=click.IntRange(1, 100), help="Number of connections of each router in a random mesh. [default: 4]"
)
@click.option("--seed", type=click.IntRange(0), default=1, help="Seed of all random choices.")
@click.option("--duration", "duration_s", type=DURATION, default="60s", help="Virtual time of traffic and faults.")
@click.option(
    "--every",
    "period_s",
    type=DURATION,
    help="Period of the faults: one fault each, healed in the last eighth. [default: 8s, or longer if silence takes "
    "longer]",
)
@click.option("--faults", type=FaultKinds(), default=",".join(KINDS), metavar="KINDS", help="Kinds of faults, or none.")
@click.option("--addresses", type=click.IntRange(0), default=8, help="Number of addresses with traffic, of all types.")
@click.option(
    "--consumers",
    type=click.IntRange(1),
    default=2,
    help="Number of consumers of each address; each address has one producer.",
)
@click.option("--rate", "rate_per_s", type=RATE, default="10/s", help="Rate of each producer.")
@click.option(
    "--measure", "is_measured", is_flag=True, help="With --json: also the time, CPU and memory of the simulation."
)
@output_options
def command(
    out: Output,
    topology_path: Path | None,
    routers: int | None,
    degree: int | None,
    faults: tuple[str, ...],
    period_s: float | None,
    is_measured: bool,
    **options: Any,
) -> int:
    """Let routers, brokers and links of a mesh fail in virtual time, and count lost and late messages.

    Real: routers and embedded brokers as `amqpmesh node` runs them, the AMQP engines between them, the brokers'
    files. Simulated: the network (a connection takes 1 ms each way), time, and clients. Left out: TLS, SASL, sockets,
    heartbeats of AMQP, existing brokers, and what a busy processor delays.

    \b
    Faults:
      cut      a connection between two routers is closed, and both routers notice at once
      crash    a router is killed with all its deliveries, and starts again empty
      silence  a connection carries no byte any more, and only missing HELLOs show it
      delay    a connection takes 20, 50 or 200 ms each way
      broker   an embedded broker is killed, and starts again with its stored messages

    After each change, every router's picture of the mesh is compared with the truth. At the end, all is healed, and
    each message has to be accounted for. Exit code 1 if a picture is wrong, a message was accepted and lost, came
    twice without saying so, or has no outcome. The same seed prints the same, on any machine; the time and memory that
    the run took are on stderr.

    \b
    Examples:
      amqpmesh simulate
      amqpmesh simulate --seed 7 --duration 10m --faults crash,broker
      amqpmesh simulate --routers 1000 --duration 60s --json
    """
    from mesh.simulation import run
    from mesh.simulation.simulation import SimulationRequest

    if routers is not None and topology_path is not None and is_typed():
        raise click.UsageError("--routers makes a random topology: -t is not allowed with it")
    if routers is None and degree is not None:
        raise click.UsageError("--degree is for a random mesh: it needs --routers")
    topology = random_mesh(routers, degree, options["seed"]) if routers is not None else topology_at(topology_path)
    # A period must leave time for a fault's effects: with silence among the faults, it is longer than twice
    # hello_max_age_s, the time after which a silent connection is dropped.
    least_s = 2 * topology.hello_max_age_s + 1 if "silence" in faults else 0.1
    period_s = max(8.0, least_s) if period_s is None else period_s
    if period_s < least_s:
        raise click.UsageError(
            f"--every {period_s:g}s is too short to see the effects of the given --faults: expected at least "
            f"{least_s:g}s"
        )
    if faults and options["duration_s"] < period_s:
        raise click.UsageError(
            f"--duration {options['duration_s']:g}s is over before the first fault, in {period_s:g}s: nothing would be "
            "tried; give a longer --duration, a shorter --every, or --faults none"
        )
    order = SimulationRequest(topology=topology, faults=faults, period_s=period_s, **options)
    return run.run(order, out, is_measured=is_measured)


def random_mesh(routers: int, degree: int | None, seed: int) -> Topology:
    from mesh.simulation.plan import random_topology

    try:
        return random_topology(routers, degree or min(DEGREE, routers - 1), seed)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def topology_at(path: Path | None) -> Topology:
    from mesh.terminal.topology_file import load_topology

    return load_topology(path)
