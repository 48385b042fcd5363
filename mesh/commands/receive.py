"""`amqpmesh receive`"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mesh.terminal.connection_options import address_arguments, connection_options, make_request
from mesh.terminal.options import AliasedOption, output_options
from mesh.terminal.output import Output
from mesh.terminal.units import DURATION

if TYPE_CHECKING:
    from mesh.messages.receiving import ReceiveOrder


def checked_format(_ctx: click.Context, _option: click.Parameter, template: str) -> str:
    from mesh.terminal.message_format import check_format

    try:
        return check_format(template)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command("receive", context_settings={"show_default": True})
@address_arguments
@click.option(
    "-c",
    "--count",
    "--message-count",
    "--messages",
    "--cmessages",
    cls=AliasedOption,
    type=click.IntRange(1),
    metavar="N",
    help="Stop after N messages. [default: go on]",
)
@click.option("-W", "--timeout", "timeout_s", type=DURATION, help="Stop when nothing comes for that long.")
@click.option("-e", "--exit-when-empty", "is_until_empty", is_flag=True, help="Stop when there is nothing more now.")
@click.option("--browse", "is_browsing", is_flag=True, help="Look at the messages of a queue and leave them there.")
@click.option("--selector", metavar="SQL92", help="Only messages for which this holds.")
@click.option(
    "--durable",
    "subscription",
    metavar="NAME",
    help="Take from the durable subscription NAME of a topic. It collects on when this ends, for the next time.",
)
@click.option(
    "--client-id",
    metavar="ID",
    help="The container-id: whose subscription NAME is. [default: amqpmesh with --durable, else a new one]",
)
@click.option("--unsubscribe", is_flag=True, help="End the subscription of --durable and what it has; receive nothing.")
@click.option("--credit", type=click.IntRange(1, 100_000), default=100, help="Messages on their way at once.")
@click.option(
    "--outcome",
    type=click.Choice(["accept", "release", "reject", "modify"]),
    default="accept",
    help="What becomes of each message; released ones go back.",
)
@click.option(
    "-F",
    "--format",
    "template",
    default="%b\\n",
    callback=checked_format,
    help="%t time, %a address, %k key, %b body, %s subject, %i id, %p properties, %c type, %n number, %d deliveries.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Bodies as files 000001, 000002 ... in DIR, behind those that are there.",
)
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the address to FILE, or a FIFO, once messages can come: scripts wait for it before they send.",
)
@connection_options
@output_options
def command(out: Output, unsubscribe: bool, **options: Any) -> int:
    """Receive messages from an address and print them.

    URL is [amqp[s]:][//[user[:password]@]host[:port]/]address, percent-encoded. Without a host: the first listener
    of the mesh in this folder; localhost:5672 where there is no topology. With --json: one document a line.

    Bodies of up to 256 MiB are printed; -o writes bodies of any size to files as they come, and --json prints the
    names of the files.

    If -W ends the command, the exit code is 75 if fewer messages came than -c asks for. Without -c, or with -e, the
    exit code is 0, even if no message came.

    \b
    Examples:
      amqpmesh receive orders
      amqpmesh receive orders -c 10 -W 30s --json
      amqpmesh receive amqp://broker.example/orders -e -F '%t %k %b\\n'
      amqpmesh receive orders --browse -e
      amqpmesh receive 'news.#' --durable laptop -e
      amqpmesh receive 'news.#' --durable laptop --unsubscribe
      amqpmesh receive prices.tea --ready-file ready &
    """
    from mesh.messages import receiving

    order = receiving.ReceiveOrder(**{field.name: options[field.name] for field in fields(receiving.ReceiveOrder)})
    request = make_request(options)
    check_subscription(order, request.url.address, unsubscribe=unsubscribe)
    return receiving.run_unsubscribe(request, order, out) if unsubscribe else receiving.run(request, order, out)


def check_subscription(order: ReceiveOrder, address: str, *, unsubscribe: bool) -> None:
    if order.subscription is None:
        if unsubscribe:
            raise click.UsageError("--unsubscribe ends a durable subscription: name it with --durable NAME")
    elif not order.subscription:
        raise click.UsageError("--durable needs a name, by which the subscription is found again")
    elif not address:
        raise click.UsageError("--durable needs an address: one that is made up ends with its receiver")
    elif order.is_browsing:
        raise click.UsageError("--browse looks at a queue, and --durable takes from a topic: use one of them")
