"""The command `amqpmesh user add NAME`, which adds a user to a topology file, or changes the user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output


@click.group("user")
def command() -> None:
    """Add users to a topology file, or change them."""


@command.command("add")
@click.argument("name")
@click.option(
    "--send", multiple=True, metavar="PATTERN", help="Pattern of addresses that the user may send to. Repeatable."
)
@click.option(
    "--receive",
    multiple=True,
    metavar="PATTERN",
    help="Pattern of addresses that the user may receive from. Repeatable.",
)
@click.option(
    "--view",
    multiple=True,
    metavar="PATTERN",
    help="Pattern of addresses whose counts, links and message headers the user may see. Repeatable.",
)
@click.option(
    "--browse",
    multiple=True,
    metavar="PATTERN",
    help="Pattern of addresses whose messages the user may see with their bodies. Repeatable.",
)
@click.option(
    "--manage",
    multiple=True,
    metavar="PATTERN",
    help="Pattern of addresses whose messages the user may purge and move. Repeatable.",
)
@click.option(
    "--password-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File whose first line is the password. [default: AMQPMESH_PASSWORD, else asked for on a terminal]",
)
@click.option("--no-password", is_flag=True, help="Add a user who logs in by certificate only.")
@click.option("--print", "is_printed", is_flag=True, help="Print the secret, and do not change the file.")
@topology_option
@output_options
def add(
    name: str,
    send: tuple[str, ...],
    receive: tuple[str, ...],
    password_file: Path | None,
    no_password: bool,
    is_printed: bool,
    topology_path: Path | None,
    out: Output,
    **rights: tuple[str, ...],
) -> None:
    """Add user NAME to the topology file, or change the user. The file keeps a salted hash, never the password.

    \b
    Examples:
      amqpmesh user add alice --send orders --receive 'news.#'
      amqpmesh user add ci --no-password --send '#'
      amqpmesh user add oncall --view '#'
    """
    secret = None if no_password else make(new_password(name, password_file))
    if is_printed:
        print_secret(name, secret, out)
        return
    path, is_new = write(topology_path, name, secret, {"send": send, "receive": receive, **rights})
    if out.is_json:
        out.document({"user": name, "file": str(path), "added": is_new})
    else:
        out.say(f"{'added' if is_new else 'changed'} user {name} in {path}; a running mesh needs down and up to use it")


def print_secret(name: str, secret: str | None, out: Output) -> None:
    if out.is_json:
        out.document({"user": name, "password": secret})
    elif secret is not None:
        out.data(secret)


def write(
    topology_path: Path | None, name: str, secret: str | None, patterns: Mapping[str, tuple[str, ...]]
) -> tuple[Path, bool]:
    from addressing.errors import TopologyErrors
    from addressing.topology.edits import set_user
    from mesh.terminal.topology_file import TopologyInvalid, locate

    path = locate(topology_path)
    try:
        return path, set_user(path, name, secret, **{key: given for key, given in patterns.items() if given})
    except TopologyErrors as errors:
        raise TopologyInvalid(errors) from None


def make(password: str) -> str:
    from addressing.topology.credentials import SecretError, make_secret

    try:
        return make_secret(password)
    except SecretError as error:
        raise click.UsageError(str(error)) from None


def new_password(name: str, password_file: Path | None) -> str:
    from mesh.terminal.passwords import read_password

    return read_password(name, password_file, is_new=True)
