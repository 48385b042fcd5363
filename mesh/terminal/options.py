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
    """Tell whether the user typed option ``name`` of the running command: False if the option's value comes from the
    environment or is a default.
    """
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def output_options(command: Command) -> Command:
    """Add the options --json and --no-color to ``command``, which gets an Output made of the two as ``out``."""

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
    """Return the schema name in the running command's JSON: `certs.show` for `amqpmesh certs show` and its aliases."""
    names = []
    while ctx.parent is not None:
        names.append(ctx.command.name or "")
        ctx = ctx.parent
    return ".".join(reversed(names))


class AliasedOption(click.Option):
    """An option with aliases that other tools use for the option; help and errors show only the first long name."""

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
    """An option that raises UsageError when given twice; with a plain option, Click would use the last value."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        parser.add_option(obj=self, opts=self.opts, dest=self.name, action="append", nargs=self.nargs)

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        given = opts.get(self.name or "")
        if given is None:
            return super().consume_value(ctx, opts)
        if len(given) > 1:
            raise click.UsageError(f"{self.opts[0]} is given {len(given)} times: expected once", ctx)
        return super().consume_value(ctx, {**opts, self.name or "": given[0]})
