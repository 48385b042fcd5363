"""`amqpmesh send`"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mesh.terminal.connection_options import address_arguments, connection_options, make_request
from mesh.terminal.options import AliasedOption, OnceOption, output_options
from mesh.terminal.output import Output
from mesh.terminal.units import DURATION, RATE, SIZE

OUTCOMES = ("accepted", "released", "rejected", "modified")


@click.command("send", context_settings={"show_default": True})
@address_arguments
@click.option(
    "-m",
    "--message",
    "text",
    cls=OnceOption,
    metavar="TEXT",
    help="Text of the message. (-c is the number of messages.)",
)
@click.option(
    "-f",
    "--file",
    cls=OnceOption,
    type=click.File("rb"),
    metavar="FILE",
    help="File that is sent as the message; - is stdin.",
)
@click.option("-l", "--lines", is_flag=True, help="Send each line of stdin as a message.")
@click.option(
    "-s",
    "--size",
    "--body-size",
    cls=AliasedOption,
    type=SIZE,
    help="Send a message with a body of this size, such as 1k.",
)
@click.option(
    "-c",
    "--count",
    "--message-count",
    "--messages",
    "--pmessages",
    cls=AliasedOption,
    type=click.IntRange(1),
    metavar="N",
    help="Send N messages. [default: 1, or as many as -l and -d give]",
)
@click.option("-r", "--rate", type=RATE, help="Highest rate, such as 500/s.")
@click.option("-d", "--duration", "duration_s", type=DURATION, help="Send for this time, such as 30s.")
@click.option(
    "-p",
    "--property",
    "properties",
    multiple=True,
    metavar="K=V",
    help="Application property; K:=V for a JSON value. Repeatable.",
)
@click.option("--subject", metavar="TEXT", help="Subject of the message.")
@click.option("--ttl", "ttl_s", type=DURATION, help="Time to live: the message expires after this time.")
@click.option(
    "--priority",
    type=click.IntRange(0, 255),
    default=4,
    help="Priority of the message, 0 to 9: queues and routers send higher priorities first.",
)
@click.option(
    "--durable",
    is_flag=True,
    help="Send durable messages, which existing brokers keep over a restart. Embedded brokers store every message "
    "anyway.",
)
@click.option("--content-type", metavar="TYPE", help="Content type of the body, such as application/json.")
@click.option("--key", metavar="GROUP", help="Group of the message (group-id); messages of one group stay in order.")
@click.option("--presettled", is_flag=True, help="Send settled messages, which have no outcome.")
@click.option(
    "--timeout", "timeout_s", type=DURATION, default="10s", help="Give up when no message moves for this time."
)
@click.option(
    "--expect", type=click.Choice(OUTCOMES), default="accepted", help="Exit with 1 when an outcome differs from this."
)
@connection_options
@output_options
def command(out: Output, file: Any, text: str | None, lines: bool, size: int | None, **options: Any) -> int:
    """Send messages to an address and count their outcomes.

    URL is [amqp[s]:][//[user[:password]@]host[:port]/]address, percent-encoded. Without a host: the first listener
    of the mesh in this folder; localhost:5672 where there is no topology.

    Large bodies, of -s or -f, are sent in pieces and never held as a whole; a body has less than 4 GiB.

    \b
    Examples:
      amqpmesh send orders -m 'one coffee'
      amqpmesh send amqp://broker.example/orders -c 1000 -s 1k -r 500/s
      tail -f access.log | amqpmesh send logs -l --presettled
      amqpmesh receive rpc.add --outcome reject -c 1 & amqpmesh send rpc.add -m x --expect rejected
    """
    from mesh.messages import sender

    bodies = choose_bodies(text, file, lines, size, options)
    if text is not None and text.isdigit() and options["count"] is None:
        out.say(f"note: the text {text} is sent as the message; the option -c {text} sends {text} messages")
    request = make_request(options)
    order = sender.SendRequest(
        bodies=bodies,
        count=options["count"] or (None if lines or options["duration_s"] else 1),
        rate_per_s=options["rate"],
        duration_s=options["duration_s"],
        template=sender.make_template(options),
        is_presettled=options["presettled"],
        timeout_s=options["timeout_s"],
        expect=options["expect"],
    )
    return sender.run(request, order, out)


def choose_bodies(text: str | None, file: Any, lines: bool, size: int | None, options: dict[str, Any]) -> Any:
    """Return an endless iterator of the body that -m, -f or -s gives, or with -l an iterator of the lines of stdin.

    With -c or -d and none of these options, the body has 100 bytes. Raises UsageError without any of them all, or if
    several options give the message.
    """
    from mesh.messages import sender
    from mesh.messages.large_body import filler, read_body

    given = [name for name, value in (("-m", text), ("-f", file), ("-s", size)) if value is not None]
    given += ["-l"] if lines else []
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} each give the message: expected only one of them")
    if lines:
        return sender.stdin_lines()
    if text is not None:
        return sender.endless(text)
    if file is not None:
        return sender.endless(sized("-f", lambda: read_body(file)))
    if size is None and options["count"] is None and options["duration_s"] is None:
        raise click.UsageError("expected a message: -m TEXT, -f FILE, -l (lines of stdin) or -s SIZE")
    return sender.endless(sized("-s", lambda: filler(100 if size is None else size)))


def sized(option: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None
