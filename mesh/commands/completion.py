"""`amqpmesh completion SHELL`"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from mesh.terminal.options import output_options
from mesh.terminal.output import Output


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@output_options
def command(shell: str, out: Output) -> None:
    """Print the completion script of a shell.

    \b
    Examples:
      eval "$(amqpmesh completion bash)"
      amqpmesh completion fish > ~/.config/fish/completions/amqpmesh.fish
    """
    from mesh.commands.cli import cli

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(cli, {}, "amqpmesh", "_AMQPMESH_COMPLETE").source()
    if out.is_json:
        out.document({"shell": shell, "script": script})
    else:
        out.data(script)
