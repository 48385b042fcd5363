"""The options that many commands share."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from mesh.terminal.output import Output, wants_color

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


def is_typed(name: str = "topology_path") -> bool:
    """Whether the running command got the option on the command line, not from the environment or by default."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def output_options(command: Command) -> Command:
    """Add --json and --no-color; the command gets an Output as ``out``."""

    @click.option("--json", "is_json", is_flag=True, help="Print JSON with a stable schema.")
    @click.option("--no-color", is_flag=True, help="Print without colours, as with NO_COLOR.")
    @functools.wraps(command)
    def with_output(*args: Any, is_json: bool, no_color: bool, **kwargs: Any) -> Any:
        ctx = click.get_current_context()
        ctx.color = None if wants_color(no_color) else False
        out = Output(schema_name(ctx), is_json=is_json, is_colored=wants_color(no_color))
        return command(*args, out=out, **kwargs)

    return with_output


def schema_name(ctx: click.Context) -> str:
    """Return the schema name of the running command: `certs.show` for `amqpmesh certs show`, also under an alias."""
    names = []
    while ctx.parent is not None:
        names.append(ctx.command.name or "")
        ctx = ctx.parent
    return ".".join(reversed(names))


class AliasedOption(click.Option):
    """An option that also takes the names of other tools; help and errors show only the first long name."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return click.Option.get_help_record(self._as_documented(), ctx)

    def get_error_hint(self, ctx: click.Context | None) -> str:
        return click.Option.get_error_hint(self._as_documented(), ctx)

    def _as_documented(self) -> click.Option:
        shown = copy.copy(self)
        short = [name for name in self.opts if not name.startswith("--")]
        shown.opts = [*short, *[name for name in self.opts if name.startswith("--")][:1]]
        return shown


class OnceOption(click.Option):
    """An option that is an error when given twice; Click would silently use the last value."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        parser.add_option(obj=self, opts=self.opts, dest=self.name, action="append", nargs=self.nargs)

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        given = opts.get(self.name or "")
        if given is None:
            return super().consume_value(ctx, opts)
        if len(given) > 1:
            raise click.UsageError(f"{self.opts[0]} is given {len(given)} times: expected once", ctx)
        return super().consume_value(ctx, {**opts, self.name or "": given[0]})
