"""`amqpmesh broker browse|move|redrive`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.commands.broker_options import (
    broker_option,
    count_option,
    numbers_option,
    refuse_shared,
    selection,
    subscriber_option,
    up_to_option,
)
from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output


@click.command("browse")
@click.argument("address")
@subscriber_option
@click.option(
    "-n",
    "--messages",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    metavar="N",
    help="Show at most N messages of each broker.",
)
@click.option("--after", type=click.IntRange(0), metavar="NUMBER", help="Show messages with numbers above this one.")
@click.option(
    "--search",
    metavar="TEXT",
    help="Show only messages with TEXT in a field, property or annotation; with --bodies, in the body, too.",
)
@click.option("--bodies", is_flag=True, help="Show the bodies.")
@click.option(
    "--body-bytes",
    type=click.IntRange(0, 65536),
    default=4096,
    show_default=True,
    metavar="N",
    help="Show at most the first N bytes of a body.",
)
@broker_option
@topology_option
@output_options
def browse_some(
    address: str,
    subscriber: str | None,
    messages: int,
    after: int | None,
    search: str | None,
    bodies: bool,
    body_bytes: int,
    only: str | None,
    topology_path: Path | None,
    out: Output,
) -> None:
    """Show the messages of a queue, or of a subscription, in order of arrival. They stay where they are.

    \b
    Columns:
      NUMBER     message number: rises in the queue; other commands take it
      STATE      available; locked: with a consumer
      BYTES      size of the message
      DELIVERED  number of earlier deliveries, not counting released ones
      EXPIRES    when it is dropped, or moved, if nobody has taken it until then
      REASON     why it was taken from another queue, if it was
      MESSAGE-ID, SUBJECT, PROPERTIES, BODY
                 what the sender wrote; JSON shows all of it, in the form of docs/reference/message-json.md

    \b
    Examples:
      amqpmesh broker browse orders.dead --bodies
      amqpmesh broker browse orders --search 4711 --json | jq '.messages[].properties'
    """
    from mesh.operations.broker_control import browse_each, sites_of
    from mesh.operations.broker_report import tell_messages
    from mesh.terminal.topology_file import load_topology

    topology = load_topology(topology_path)
    sites = sites_of(topology, address, only)
    refuse_shared("--after", address, sites, after)
    shown = {"bodies": True, "body_bytes": body_bytes} if bodies else {}
    found = browse_each(
        topology,
        sites,
        lambda site: {"address": site.address, **selection(subscriber=subscriber, after=after, search=search), **shown},
        messages,
    )
    tell_messages(found, out, {"address": address, "subscriber": subscriber}, with_bodies=bodies)


@click.command("move")
@click.argument("source")
@click.argument("target")
@subscriber_option
@count_option
@numbers_option
@up_to_option
@broker_option
@topology_option
@output_options
def move_some(
    source: str,
    target: str,
    subscriber: str | None,
    count: int | None,
    numbers: list[int] | None,
    up_to: int | None,
    only: str | None,
    topology_path: Path | None,
    out: Output,
) -> None:
    """Move messages that wait in a queue, in order, to another queue of the same broker.

    Whatever happens, each message is in one of the two queues at any time. Messages that are with a consumer are not
    moved. Ctrl-C stops the command; messages moved by then stay in the new queue.

    \b
    Examples:
      amqpmesh broker move orders orders.parked
      amqpmesh broker move orders.parked orders -c 100
      amqpmesh broker move orders orders.parked --numbers 17,23
    """
    from mesh.operations.broker_control import ask_each, name_at, sites_of
    from mesh.operations.broker_report import tell_totals
    from mesh.terminal.topology_file import load_topology

    topology = load_topology(topology_path)
    sites = sites_of(topology, source, only)
    for option, value in (("-c", count), ("--numbers", numbers), ("--up-to", up_to)):
        refuse_shared(option, source, sites, value)
    found = ask_each(
        topology,
        sites,
        "move",
        lambda site: {
            "source": site.address,
            "target": name_at(topology, target, site.broker),
            "subscriber": subscriber,
            "count": count,
            **selection(numbers=numbers, up_to=up_to),
        },
    )
    fields = {"source": source, "target": target, "subscriber": subscriber}
    tell_totals(found, out, fields, lambda messages: f"moved {messages} from {source} to {target}")


@click.command("redrive")
@click.argument("queue")
@click.option(
    "--to",
    "target",
    metavar="ADDRESS",
    help="Move all messages to this queue. [default: each to the queue that it comes from]",
)
@count_option
@numbers_option
@up_to_option
@broker_option
@topology_option
@output_options
def redrive_some(
    queue: str,
    target: str | None,
    count: int | None,
    numbers: list[int] | None,
    up_to: int | None,
    only: str | None,
    topology_path: Path | None,
    out: Output,
) -> None:
    """Move dead letters back to the queues that they come from, as `broker move` does; they count as never delivered.

    \b
    Examples:
      amqpmesh broker redrive orders.dead --to orders
      amqpmesh broker redrive orders.dead --up-to 4711
    """
    from mesh.operations.broker_control import ask_each, name_at, sites_of
    from mesh.operations.broker_report import tell_totals
    from mesh.terminal.topology_file import load_topology

    topology = load_topology(topology_path)
    sites = sites_of(topology, queue, only)
    for option, value in (("-c", count), ("--numbers", numbers), ("--up-to", up_to)):
        refuse_shared(option, queue, sites, value)
    found = ask_each(
        topology,
        sites,
        "redrive",
        lambda site: {
            "address": site.address,
            "to": None if target is None else name_at(topology, target, site.broker),
            "count": count,
            **selection(numbers=numbers, up_to=up_to),
        },
    )
    where = "where they come from" if target is None else target
    fields = {"source": queue, "target": target}
    tell_totals(found, out, fields, lambda messages: f"moved {messages} from {queue} to {where}")
