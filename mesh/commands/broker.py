"""`amqpmesh broker list|show|create|delete|purge|remove`, with the commands of `broker_messages`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mesh.commands.broker_messages import browse_some, move_some, redrive_some
from mesh.commands.broker_options import (
    broker_option,
    described,
    numbers_in,
    refuse_shared,
    selection,
    subscriber_option,
    up_to_option,
)
from mesh.terminal.counts import number_of
from mesh.terminal.failure import CommandFailed
from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output

yes_option = click.option("-y", "--yes", "is_yes", is_flag=True, help="Do not ask for confirmation.")


@click.group("broker")
def command() -> None:
    """Look after the queues and subscriptions of embedded brokers.

    The commands connect to a broker at its port for nodes of the mesh, and log in with the operator's certificate.
    """


@command.command("list")
@click.option(
    "--broker", "only", metavar="NAME", help="Show queues of this broker only. [default: all embedded brokers]"
)
@topology_option
@output_options
def list_all(only: str | None, topology_path: Path | None, out: Output) -> None:
    """List every queue and subscription.

    \b
    Columns:
      KIND       queue; subscription: messages of a topic for one subscriber; temporary queue
      SUBSCRIBER container-id and link name of the subscriber, or the name of a shared subscription
      OWNER      user who made it: no other user may take from a subscription, or end it
      DURABLE    no for a queue or subscription that ends with its users, or with the broker
      AVAILABLE  messages that wait for a consumer
      ACQUIRED   messages that are with a consumer, without an outcome yet
      UNREADABLE messages that are damaged on the disk: no consumer gets them
      BYTES      size of all messages in the queue
      CONSUMERS  links that receive from it
      PRODUCERS  links that send messages to this queue only
      ENQUEUED   messages that entered the queue since the broker started, or that its store had
      DEPARTED   messages that left since then: accepted, rejected, expired, given up (too many attempts), no room
                 (dropped, or dead letters, as when_full says), moved and purged (by operators), dropped with the queue

    \b
    Examples:
      amqpmesh broker list
      amqpmesh broker list --broker b1 --json | jq '.queues[] | select(.available_count > 1000)'
    """
    from mesh.operations.broker_control import all_sites, ask_each
    from mesh.operations.broker_report import tell_queues
    from mesh.terminal.topology_file import load_topology

    topology = load_topology(topology_path)
    found = ask_each(topology, all_sites(topology, only), "list", lambda site: {})
    tell_queues(found, out, with_messages=False)


@command.command("show")
@click.argument("address")
@subscriber_option
@click.option(
    "-n",
    "--messages",
    type=click.IntRange(0, 1000),
    default=10,
    show_default=True,
    metavar="N",
    help="Show the first N messages of each queue or subscription.",
)
@broker_option
@topology_option
@output_options
def show_one(
    address: str, subscriber: str | None, messages: int, only: str | None, topology_path: Path | None, out: Output
) -> None:
    """Show a queue, or the subscriptions that have to do with a topic or filter, and their first messages.

    \b
    Columns of messages:
      NUMBER     message number: the broker numbers messages as they come
      STATE      available; acquired: with a consumer
      DELIVERED  number of earlier deliveries, not counting released ones
      EXPIRES    when it is dropped, or moved, if nobody has taken it until then
      REASON     why it was taken from another queue, if it was
      ORIGIN     queue or subscription from which it was taken

    \b
    Examples:
      amqpmesh broker show orders
      amqpmesh broker show 'news.#' -n 0
    """
    from mesh.operations.broker_control import ask_each, sites_of
    from mesh.operations.broker_report import tell_queues
    from mesh.terminal.topology_file import load_topology

    topology = load_topology(topology_path)
    found = ask_each(
        topology,
        sites_of(topology, address, only),
        "show",
        lambda site: {"address": site.address, "subscriber": subscriber, "messages": messages},
    )
    tell_queues(found, out, with_messages=True)


@command.command("create")
@click.argument("address")
@broker_option
@topology_option
@output_options
def create_one(address: str, only: str | None, topology_path: Path | None, out: Output) -> None:
    """Make a queue of the topology now, at each of its brokers. Without this command, the first use makes the queue.

    \b
    Example:
      amqpmesh broker create jobs.video
    """
    from mesh.operations.broker_control import ask_each, sites_of
    from mesh.terminal.topology_file import load_topology

    topology = load_topology(topology_path)
    found = ask_each(topology, sites_of(topology, address, only), "create", lambda site: {"address": site.address})
    found.raise_failures(are_all=True)
    if out.is_json:
        out.document({"address": address, "brokers": [site.broker for site, _ in found.answers]})
    for site, _ in found.answers:
        out.say(f"{site.broker}: made queue {site.address}")
    found.raise_failures()


@command.command("delete")
@click.argument("address")
@subscriber_option
@click.option(
    "--force",
    is_flag=True,
    help="Delete also a queue that has messages or links: the messages are lost, the links are closed.",
)
@yes_option
@broker_option
@topology_option
@output_options
def delete_one(
    address: str,
    subscriber: str | None,
    force: bool,
    is_yes: bool,
    only: str | None,
    topology_path: Path | None,
    out: Output,
) -> None:
    """Delete a queue, or the durable subscription of one subscriber.

    Without --force, the command refuses while the queue has messages, consumers or producers. A queue that the topology
    keeps is made again by whoever uses it next.

    \b
    Examples:
      amqpmesh broker delete jobs.old
      amqpmesh broker delete 'news.#' --subscriber 'shop|laptop|reader' --force
    """
    from mesh.operations.broker_control import ask_each, sites_of
    from mesh.operations.broker_report import tell_totals
    from mesh.terminal.topology_file import load_topology

    topology = load_topology(topology_path)
    sites = sites_of(topology, address, only)
    loss = ", with all messages in it" if force else ""
    confirm(f"Delete {described(address, subscriber, sites)}{loss}?", is_yes)
    found = ask_each(
        topology,
        sites,
        "delete",
        lambda site: {"address": site.address, "subscriber": subscriber, "force": force},
    )
    fields = {"address": address, "subscriber": subscriber}
    tell_totals(found, out, fields, lambda messages: f"deleted {address}, {messages} in it")


@command.command("purge")
@click.argument("address")
@subscriber_option
@up_to_option
@yes_option
@broker_option
@topology_option
@output_options
def purge_one(
    address: str,
    subscriber: str | None,
    up_to: int | None,
    is_yes: bool,
    only: str | None,
    topology_path: Path | None,
    out: Output,
) -> None:
    """Drop all messages that wait in a queue or subscription now. Messages that are with a consumer stay there.

    Ctrl-C stops the command; messages dropped by then are gone.

    \b
    Examples:
      amqpmesh broker purge orders
      amqpmesh broker purge orders --up-to 4711
    """
    from mesh.operations.broker_control import ask_each, sites_of
    from mesh.operations.broker_report import tell_totals
    from mesh.terminal.topology_file import load_topology

    topology = load_topology(topology_path)
    sites = sites_of(topology, address, only)
    refuse_shared("--up-to", address, sites, up_to)
    which = "all messages" if up_to is None else f"the messages up to number {up_to}"
    confirm(f"Drop {which} that wait in {described(address, subscriber, sites)}?", is_yes)
    found = ask_each(
        topology,
        sites,
        "purge",
        lambda site: {"address": site.address, "subscriber": subscriber, **selection(up_to=up_to)},
    )
    fields = {"address": address, "subscriber": subscriber}
    tell_totals(found, out, fields, lambda messages: f"dropped {messages} of {address}")


@command.command("remove")
@click.argument("address")
@click.argument("numbers", nargs=-1, required=True, metavar="NUMBER...", callback=lambda c, o, texts: numbers_in(texts))
@subscriber_option
@yes_option
@broker_option
@topology_option
@output_options
def remove_some(
    address: str,
    numbers: list[int],
    subscriber: str | None,
    is_yes: bool,
    only: str | None,
    topology_path: Path | None,
    out: Output,
) -> None:
    """Drop the messages with these numbers, as `broker browse` shows them. Messages that are with a consumer stay.

    \b
    Example:
      amqpmesh broker remove orders 17 23
    """
    from mesh.operations.broker_control import ask_each, sites_of
    from mesh.operations.broker_report import tell_removed
    from mesh.terminal.topology_file import load_topology

    topology = load_topology(topology_path)
    sites = sites_of(topology, address, only)
    refuse_shared("NUMBER", address, sites, numbers)
    confirm(f"Drop {number_of(len(numbers), 'message')} of {described(address, subscriber, sites)}?", is_yes)
    found = ask_each(
        topology,
        sites,
        "remove",
        lambda site: {"address": site.address, **selection(subscriber=subscriber), "numbers": numbers},
    )
    tell_removed(found, out, {"address": address, "subscriber": subscriber})


for each in (browse_some, move_some, redrive_some):
    command.add_command(each)


def confirm(question: str, is_yes: bool) -> None:
    if is_yes:
        return
    if not is_attended():
        raise click.UsageError("cannot ask for confirmation without a terminal: confirm with --yes")
    if not click.confirm(question, err=True):
        raise CommandFailed("not confirmed: nothing was changed")


def is_attended() -> bool:
    return sys.stdin.isatty()
