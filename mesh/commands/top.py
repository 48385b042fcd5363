"""`amqpmesh top`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output
from mesh.terminal.units import DURATION

THINGS = ("addresses", "links", "clients", "queues", "nodes")


@click.command("top")
@click.argument("thing", type=click.Choice(THINGS), default=THINGS[0])
@topology_option
@click.option(
    "-s", "--sort", metavar="FIELD", help="Field to sort by: the largest number first. [default: rate, or depth]"
)
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True, help="Most rows to show.")
@click.option("--every", "every_s", type=DURATION, default="2s", show_default=True, help="Time between two tables.")
@click.option("--once", "is_once", is_flag=True, help="Print one table, after two seconds, and end.")
@output_options
def command(
    thing: str,
    topology_path: Path | None,
    sort: str | None,
    limit: int,
    every_s: float,
    is_once: bool,
    out: Output,
) -> int:
    """Show the busiest addresses, links, clients, queues or nodes of a running mesh, live.

    The numbers come from the records that nodes write anyway: the traffic does not notice. The observer of this machine
    shows the whole mesh; without an observer, only the nodes here are shown, and counts begin with what their rings
    still have. A client counts once, at the router that it is connected to. Without a terminal, or with --json, as with
    --once; --json prints all fields of each row. The reference of entities (docs/reference/entities.md) lists the
    fields.

    Below the table: nodes that are not running, or of which nobody tells; records that the numbers lack.

    Exit code 69 when no node runs.

    \b
    Columns of addresses:
      PATTERN    entry of the topology's addresses that covers the address
      PRODUCERS  links of clients that send; of these are WAITING: without credit
      CONSUMERS  links of clients that receive
      DEPTH      messages in the queue, over all brokers
      IN, OUT    deliveries from clients and to clients; /S: per second
      RELEASED   deliveries that were given back because no consumer took them

    \b
    Columns of links:
      ROLE       producer, consumer; circuit: between routers; broker: to a broker
      CREDIT     credit, as last recorded
      WAITS FOR  what a producer without credit waits for: no_taker, takers, full_queue, disk, memory
      UNSETTLED  deliveries that wait for an outcome, of a link that stands still

    \b
    Columns of queues:
      SUBSCRIBER the subscriber, if the queue is a subscription
      ACQUIRED   messages that consumers have, without an outcome yet
      OLDEST S   age of the oldest message, in seconds
      DEAD       messages that moved to the dead-letter queue

    \b
    Columns of nodes:
      STATE      running; silent: writes no clock; ended; lost: the process is gone without a record of its end
      AGE S      time since the node last wrote its clock, in seconds
      WAITING    links of producers without credit

    \b
    Examples:
      amqpmesh top
      amqpmesh top links --sort unsettled
      amqpmesh top queues --sort oldest_s --limit 5 --once
      amqpmesh top addresses --json
    """
    from mesh.operations import top
    from mesh.terminal.topology_file import load_topology

    return top.run(
        load_topology(topology_path),
        thing,
        sort=sort,
        limit=limit,
        every_s=every_s,
        is_once=is_once,
        out=out,
        path=topology_path,
    )
