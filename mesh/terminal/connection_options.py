"""The options with which client commands, such as `send` and `receive`, choose a server, a login and TLS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from mesh.client.url import AmqpUrl, parse_url
from mesh.terminal.options import AliasedOption, Command, topology_option

MECHANISMS = ("ANONYMOUS", "PLAIN", "EXTERNAL", "SCRAM-SHA-256")


class Url(click.ParamType[AmqpUrl]):
    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> AmqpUrl:
        try:
            return parse_url(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@dataclass(frozen=True, slots=True)
class ConnectionRequest:
    """The values of a client command's connection options; ``mesh.deploy.server_lookup`` fills in missing values."""

    url: AmqpUrl
    topology_path: Path | None
    user: str | None
    password_file: Path | None
    ca: Path | None
    cert: Path | None
    key: Path | None
    is_insecure: bool
    mechanisms: tuple[str, ...] | None


def address_arguments(command: Command) -> Command:
    command = click.option(
        "-a",
        "--address",
        "--destination",
        cls=AliasedOption,
        type=Url(),
        help="Address or URL: the same as URL.",
        metavar="URL",
    )(command)
    return click.argument("url", type=Url(), required=False, metavar="[URL]")(command)


def connection_options(command: Command) -> Command:
    path = click.Path(path_type=Path, exists=True, dir_okay=False)
    for option in reversed(
        (
            topology_option,
            click.option("-u", "--user", metavar="NAME", help="User to log in as; overrides the user in the URL."),
            click.option(
                "--password-file",
                type=path,
                help="File whose first line is the password. [default: AMQPMESH_PASSWORD, else asked for on a "
                "terminal]",
            ),
            click.option("--ca", type=path, help="Trust the certificate authorities in this file (PEM)."),
            click.option("--cert", type=path, help="Client certificate (PEM)."),
            click.option("--private-key", "private_key", type=path, help="Key of the client certificate (PEM)."),
            click.option("--insecure", is_flag=True, help="Do not check the certificate of the server."),
            click.option(
                "--sasl-mechanism",
                "mechanisms",
                multiple=True,
                type=click.Choice(MECHANISMS, case_sensitive=False),
                help="Log in by this SASL mechanism only.",
            ),
        )
    ):
        command = option(command)
    return command


def make_request(options: Mapping[str, Any]) -> ConnectionRequest:
    if (options["url"] is None) == (options["address"] is None):
        raise click.UsageError("give the address once: as URL, or by -a ADDRESS")
    return _request(options["url"] or options["address"], options)


def requests_to(servers: Sequence[str], options: Mapping[str, Any]) -> tuple[ConnectionRequest, ...]:
    """Return a ConnectionRequest for each of ``servers``, given as ``amqp://host:port`` or ``host:port``.

    Raises UsageError for an invalid URL.
    """
    try:
        urls = [parse_url(server if "//" in server else f"//{server}", needs_address=False) for server in servers]
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return tuple(_request(url, options) for url in urls)


def _request(url: AmqpUrl, options: Mapping[str, Any]) -> ConnectionRequest:
    return ConnectionRequest(
        url=url,
        topology_path=options["topology_path"],
        user=options["user"],
        password_file=options["password_file"],
        ca=options["ca"],
        cert=options["cert"],
        key=options["private_key"],
        is_insecure=options["insecure"],
        mechanisms=options["mechanisms"] or None,
    )
