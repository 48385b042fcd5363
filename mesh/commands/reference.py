"""Makes the reference of the command line, `docs/reference/cli.md`, from the commands.

python -m mesh.commands.reference > docs/reference/cli.md
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from mesh.commands.cli import ALIASES, HELP, cli
from mesh.terminal.exit_codes import MEANINGS

HEAD = """\
# The amqpmesh command

Made from the commands by `python -m mesh.commands.reference`; a test compares.

Data goes to stdout, talk to stderr. With `--json`, stdout has one JSON document, one a line for `receive`, a list of
them for `bench`, with `"schema": "amqpmesh.<command>/1"`; a failure is `"schema": "amqpmesh.error/1"`. Within a
version, fields are added and never changed. Every option can be set by the environment: `AMQPMESH_<COMMAND>_<OPTION>`,
such as `AMQPMESH_SEND_TIMEOUT=1m`. Colours are off with `--no-color`, with `NO_COLOR`, and where no terminal is.
"""


def reference() -> str:
    return "\n".join(
        (HEAD, exit_codes(), *sections(click.Context(cli, info_name="amqpmesh", **cli.context_settings), cli))
    )


def exit_codes() -> str:
    rows = [f"| {code.value} | {meaning} |" for code, meaning in MEANINGS.items()]
    return "\n".join(("## Exit codes\n", "| code | meaning |", "|---|---|", *rows, ""))


def sections(ctx: click.Context, group: click.Group) -> Iterator[str]:
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=ctx, **command.context_settings)
        if isinstance(command, click.Group):
            yield from sections(inner, command)
        else:
            yield section(inner, command)


def section(ctx: click.Context, command: click.Command) -> str:
    usage = " ".join(command.collect_usage_pieces(ctx))
    lines = [f"## {ctx.command_path}\n", f"`{ctx.command_path} {usage}`", ""]
    names = [alias for alias, name in ALIASES.items() if name == command.name]
    if names:
        lines += [f"Also: `{'`, `'.join(f'amqpmesh {name}' for name in names)}`.", ""]
    lines += [*prose(command.help or HELP), "", "| option | meaning |", "|---|---|"]
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if isinstance(param, click.Option) and record is not None:
            lines.append(f"| `{cell(record[0])}` | {cell(record[1])} |")
    return "\n".join((*lines, ""))


def prose(text: str) -> list[str]:
    """Return a help text as Markdown: paragraphs that Click does not rewrap become blocks of code."""
    lines = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b\n"):
            title, *examples = paragraph.removeprefix("\b\n").splitlines()
            kind = "sh" if title.startswith("Example") else "text"
            lines += [title, "", f"```{kind}", *inspect.cleandoc("\n".join(examples)).splitlines(), "```", ""]
        else:
            lines += [paragraph, ""]
    return lines[:-1]


def cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    click.echo(reference(), nl=False)
