"""Options that many commands share, spelt once."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from mesh.output import Output, wants_color

Command = Callable[..., Any]

topology_option = click.option(
    "-t",
    "--topology",
    "topology_path",
    envvar="AMQPMESH_TOPOLOGY",
    show_envvar=True,
    type=click.Path(path_type=Path),
    metavar="FILE|DIR",
    help="Topology file, or a folder that holds one. [default: the one in the current folder]",
)


def output_options(command: Command) -> Command:
    """Add --json and --no-color; the command gets an Output as ``out``."""

    @click.option("--json", "is_json", is_flag=True, help="Print JSON with a stable schema.")
    @click.option("--no-color", is_flag=True, help="No colours; NO_COLOR does the same.")
    @functools.wraps(command)
    def with_output(*args: Any, is_json: bool, no_color: bool, **kwargs: Any) -> Any:
        ctx = click.get_current_context()
        ctx.color = None if wants_color(no_color) else False
        out = Output(schema_name(ctx), is_json=is_json, is_colored=wants_color(no_color))
        return command(*args, out=out, **kwargs)

    return with_output


def schema_name(ctx: click.Context) -> str:
    """`certs.show` for `amqpmesh certs show`; an alias has the name of what it stands for."""
    names = []
    while ctx.parent is not None:
        names.append(ctx.command.name or "")
        ctx = ctx.parent
    return ".".join(reversed(names))


class AliasedOption(click.Option):
    """An option that also answers to the names other tools gave it; help shows only the first long one."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        shown = copy.copy(self)
        short = [name for name in self.opts if not name.startswith("--")]
        shown.opts = [*short, *[name for name in self.opts if name.startswith("--")][:1]]
        return click.Option.get_help_record(shown, ctx)
