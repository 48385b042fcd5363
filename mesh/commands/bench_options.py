"""The options that several commands of `amqpmesh bench` share, and their checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mesh.terminal.connection_options import Url
from mesh.terminal.options import Command
from mesh.terminal.units import DURATION, SIZE

if TYPE_CHECKING:
    from mesh.client.url import AmqpUrl

STAMP_BYTES = 16


class BodySize(click.ParamType[int]):
    """A Click type: the size of a message body, less than 4 GiB, with room for the stamp of 16 bytes that the load
    generator writes into each body.
    """

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        size = int(SIZE.convert(value, param, ctx))
        if not STAMP_BYTES <= size < 2**32:
            self.fail(f"{value}: expected a body of at least {STAMP_BYTES} bytes, and less than 4 GiB", param, ctx)
        return size


_url_option = click.option(
    "--url",
    type=Url(),
    metavar="URL",
    help="Measure the router or broker at amqp://[user[:password]@]host[:port]/address. [default: routers of its own]",
)
_pid_option = click.option(
    "--pid",
    "pids",
    multiple=True,
    type=click.IntRange(1),
    help="Process id of that router or broker, to measure its CPU and memory. Repeatable.",
)
_tls_option = click.option("--tls", "is_tls", is_flag=True, help="Use mutual TLS between the routers.")
_timeout_option = click.option(
    "--timeout", "stall_s", type=DURATION, default="10s", help="Give up when no message moves for this time."
)


def server_options(command: Command) -> Command:
    """Add the options that name the server to measure, and limit the wait for the server."""
    return _url_option(_pid_option(_timeout_option(command)))


def target_options(command: Command) -> Command:
    """Add the options of a server, and --tls, for commands that start several routers in line."""
    return _url_option(_pid_option(_tls_option(_timeout_option(command))))


def check(url: AmqpUrl | None, pids: tuple[int, ...], options: dict[str, Any], has_routers: object) -> None:
    """Raise UsageError for options that mean nothing together."""
    if url is None and pids:
        raise click.UsageError("--pid is only for a server at --url: name the server with --url")
    if url is not None and (options.get("is_tls") or options.get("has_records") or has_routers):
        raise click.UsageError(
            "--routers, --tls and --records are not allowed with --url: they are for routers that this command starts"
        )


def typed(*names: str) -> list[str]:
    """Return the options among ``names`` that the user gave on the command line."""
    ctx = click.get_current_context()
    given = [name for name in names if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
    return [f"--{name.replace('_', '-')}" for name in given]
