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
    from mesh.messages.receiver import ReceiveRequest


def checked_format(_ctx: click.Context, _option: click.Parameter, template: str | None) -> str | None:
    from mesh.terminal.message_format import check_format

    try:
        return None if template is None else check_format(template)
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
    help="Stop after N messages. [default: no limit]",
)
@click.option("-W", "--timeout", "timeout_s", type=DURATION, help="Stop when no message arrives for this time.")
@click.option(
    "-e", "--exit-when-empty", "is_until_empty", is_flag=True, help="Stop when the address has no more messages now."
)
@click.option("--browse", "is_browsing", is_flag=True, help="Look at the messages of a queue and leave them there.")
@click.option("--selector", metavar="SQL92", help="Receive only messages that match this selector.")
@click.option(
    "--durable",
    "subscription",
    metavar="NAME",
    help="Receive from the durable subscription NAME of a topic. The subscription remains when the command ends.",
)
@click.option(
    "--client-id",
    metavar="ID",
    help="Container-id, which owns the subscription NAME. [default: amqpmesh with --durable, else a new one]",
)
@click.option(
    "--unsubscribe", is_flag=True, help="Delete the subscription of --durable with its messages, and receive nothing."
)
@click.option("--credit", type=click.IntRange(1, 100_000), default=100, help="Most messages in flight.")
@click.option(
    "--outcome",
    type=click.Choice(["accept", "release", "reject", "modify"]),
    default="accept",
    help="Outcome of each message; a released message returns to its queue.",
)
@click.option(
    "-F",
    "--format",
    "template",
    default=None,
    show_default="%b\\n; %a %b\\n for an ADDRESS with wildcards",
    callback=checked_format,
    help="%t time, %a address, %k key, %b body, %s subject, %i id, %p properties, %c type, %n number, %d deliveries.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write bodies to files 000001, 000002 ... in DIR; numbers continue after existing files.",
)
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the address to FILE, or a FIFO, once the receiver is attached: scripts wait for this before they send.",
)
@connection_options
@output_options
def command(out: Output, unsubscribe: bool, **options: Any) -> int:
    """Receive messages from an address and print them.

    URL is [amqp[s]:][//[user[:password]@]host[:port]/]address, percent-encoded. Without a host: the first listener
    of the mesh in this folder; localhost:5672 where there is no topology. With --json: one document a line.

    With wildcards in the address, as 'news.#', the address of each message is printed before its body.

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
    from mesh.messages import receiver

    order = receiver.ReceiveRequest(**{field.name: options[field.name] for field in fields(receiver.ReceiveRequest)})
    request = make_request(options)
    check_subscription(order, request.url.address, unsubscribe=unsubscribe)
    return receiver.run_unsubscribe(request, order, out) if unsubscribe else receiver.run(request, order, out)


def check_subscription(order: ReceiveRequest, address: str, *, unsubscribe: bool) -> None:
    if order.subscription is None:
        if unsubscribe:
            raise click.UsageError("--unsubscribe needs --durable NAME, the subscription to delete")
    elif not order.subscription:
        raise click.UsageError("--durable needs a name for the subscription, and the name given is empty")
    elif not address:
        raise click.UsageError("--durable needs an address: a dynamic address ends with its receiver")
    elif order.is_browsing:
        raise click.UsageError("--browse is for queues, and --durable is for topics: use one of them")
