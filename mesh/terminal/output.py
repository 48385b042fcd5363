"""The output of commands: data goes to stdout, notes go to stderr; tables are for people, JSON is for programs.

Every JSON document names its schema, `amqpmesh.<command>/<version>`: a version may get new fields, but no changed ones.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import click

# The colors of words that mean the same in every table.
STYLES = {
    "ok": "green",
    "up": "green",
    "ready": "green",
    "warning": "yellow",
    "failed": "red",
    "down": "red",
    "silent": "red",
}


@dataclass(frozen=True, slots=True)
class Output:
    """``schema`` is the command's name with dots, such as `certs.show`."""

    schema: str
    is_json: bool = False
    is_colored: bool = True
    is_quiet: bool = False

    def say(self, text: str) -> None:
        """Print a note for people to stderr."""
        if not self.is_quiet:
            click.echo(text, err=True)

    def data(self, text: str) -> None:
        click.echo(text)

    def raw(self, text: str) -> None:
        """Print data that has its own line ends."""
        click.echo(text, nl=False)

    def document(self, fields: Mapping[str, Any]) -> None:
        """Print a JSON document: the only document of a command, or one line of a stream."""
        click.echo(json.dumps({"schema": f"amqpmesh.{self.schema}/1", **fields}, ensure_ascii=False, default=str))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None) -> None:
        cells = [[format_cell(cell) for cell in row] for row in rows]
        if sys.stdout.isatty():
            self._rich_table(columns, cells, title)
        else:
            click.echo(format_plain(columns, cells))

    def _rich_table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None) -> None:
        from rich.console import Console

        Console(no_color=not self.is_colored, highlight=False).print(rich_table(columns, rows, title))


def rich_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(Text(cell, style=STYLES.get(cell.split(" ")[0], "")) for cell in row))
    return table


def format_plain(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return one line for each row, with aligned columns and without decoration that scripts would have to strip."""
    lines = [list(columns), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def format_cell(cell: object) -> str:
    match cell:
        case None:
            return "-"
        case bool():
            return "yes" if cell else "no"
        case float():
            return f"{cell:.1f}"
        case _:
            return one_line(str(cell))


def one_line(text: str) -> str:
    """Make one printable line of ``text``: names from clients or files must not move the cursor or begin a new line."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def is_terminal(stream: IO[str]) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def wants_color(no_color: bool) -> bool:
    """Whether to print colors: ``no_color`` or a non-empty NO_COLOR turns colors off. [https://no-color.org]"""
    return not no_color and not os.environ.get("NO_COLOR")
