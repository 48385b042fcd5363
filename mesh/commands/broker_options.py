"""Options that the commands `amqpmesh broker ...` share, and what they say and refuse in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from mesh.operations.broker_control import QueueSite

broker_option = click.option(
    "--broker",
    "only",
    metavar="NAME",
    help="Act at this broker only. [default: the brokers of the address in the topology]",
)
subscriber_option = click.option(
    "--subscriber", metavar="NAME", help="Name of the durable subscription, as `broker list` shows it."
)
count_option = click.option(
    "-c",
    "--count",
    type=click.IntRange(1),
    metavar="N",
    help="Take only the first N messages. [default: all messages that wait now]",
)
up_to_option = click.option(
    "--up-to",
    type=click.IntRange(0),
    metavar="NUMBER",
    help="Take no message with a number above this one, as `broker browse` shows it: none that came later.",
)
numbers_option = click.option(
    "--numbers",
    "numbers",
    metavar="N,N...",
    callback=lambda context, option, text: None if text is None else numbers_in(text.split(",")),
    help="Take only the messages with these numbers, as `broker browse` shows them.",
)


def numbers_in(texts: Sequence[str]) -> list[int]:
    """Return the message numbers in ``texts``. Raises BadParameter for a text that is no number."""
    for text in texts:
        if not (text.strip().isascii() and text.strip().isdigit()):
            raise click.BadParameter(
                f"expected numbers of messages, as `amqpmesh broker browse` shows them, got {text!r}"
            )
    return [int(text) for text in texts]


def selection(**chosen: Any) -> dict[str, Any]:
    """Return the arguments of a request that select messages; those that the user did not give are left out."""
    return {name: value for name, value in chosen.items() if value is not None}


def described(address: str, subscriber: str | None, sites: Sequence[QueueSite]) -> str:
    whose = f"the subscription of {subscriber} to " if subscriber is not None else ""
    return f"{whose}{address} on {', '.join(site.broker for site in sites)}"


def refuse_shared(option: str, address: str, sites: Sequence[QueueSite], value: object) -> None:
    """Raise UsageError if an option that is about the messages of one broker is given for several brokers."""
    if value is not None and len(sites) > 1:
        names = ", ".join(site.broker for site in sites)
        what = "counts" if option == "-c" else "is about"
        raise click.UsageError(
            f"{option} {what} messages of one broker, and {address} is spread over {names}: name one with --broker"
        )
