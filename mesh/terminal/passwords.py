"""Finds a password in a file, in the environment or by asking at the terminal; never on the command line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

VARIABLE = "AMQPMESH_PASSWORD"


def find_password(owner: str, file: Path | None, *, is_new: bool = False) -> str | None:
    """Return the password of ``owner``: the first line of ``file``, else AMQPMESH_PASSWORD, else typed at the terminal.

    None without file and variable if stdin is no terminal. With ``is_new``, the user has to type the password twice.
    """
    if file is not None:
        return file.read_text().partition("\n")[0].rstrip("\r")
    if (password := os.environ.get(VARIABLE)) is not None:
        return password
    if sys.stdin.isatty():
        return str(click.prompt(f"Password of {owner}", hide_input=True, confirmation_prompt=is_new, err=True))
    return None


def read_password(owner: str, file: Path | None, *, is_new: bool = False) -> str:
    password = find_password(owner, file, is_new=is_new)
    if password is None:
        raise click.UsageError(f"no password for {owner}: give it with --password-file or {VARIABLE}")
    return password
