"""The output of commands: data goes to stdout, notes go to stderr; tables are for people, JSON is for programs.

Every JSON document names its schema, `amqpmesh.<command>/<version>`: within a version, fields may be added, but are
never changed or removed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import click

# The color of a table's cell, by the first word in the cell.
STYLES = {
    "ok": "green",
    "up": "green",
    "ready": "green",
    "running": "green",
    "warning": "yellow",
    "failed": "red",
    "down": "red",
    "lost": "red",
    "silent": "red",
}


@dataclass(frozen=True, slots=True)
class Output:
    """Prints the output of one command: notes, data, tables and JSON documents.

    ``schema`` is the command's name with dots, such as `certs.show`, for JSON documents.
    """

    schema: str
    is_json: bool = False
    is_colored: bool = True
    is_quiet: bool = False

    def say(self, text: str) -> None:
        """Print a note for people to stderr, unless the command was asked to be quiet."""
        if not self.is_quiet:
            click.echo(text, err=True)

    def data(self, text: str) -> None:
        click.echo(text)

    def raw(self, text: str) -> None:
        """Print data to stdout without adding a line end."""
        click.echo(text, nl=False)

    def document(self, fields: Mapping[str, Any]) -> None:
        """Print ``fields`` with the schema's name as one line of JSON; a command may print several."""
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
    """Return the table as plain text: one line for each row, with aligned columns, no borders and no colors."""
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
    """Return ``text`` as one printable line: unprintable characters become spaces, since names from clients may hold
    escapes, and of successive spaces one is left.
    """
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def is_terminal(stream: IO[str]) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def wants_color(no_color: bool) -> bool:
    """Tell whether to print colors: ``no_color`` or a non-empty NO_COLOR turns them off. [https://no-color.org]"""
    return not no_color and not os.environ.get("NO_COLOR")
