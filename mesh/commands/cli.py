"""The `amqpmesh` command: imports the sub-command to run, runs it, and turns errors into exit codes.

Nothing heavy is imported here: `amqpmesh --help` must answer at once.
"""

from __future__ import annotations

import difflib
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import click

from mesh.client.errors import MeshError
from mesh.terminal.exit_codes import MEANINGS, ExitCode
from mesh.terminal.failure import CommandFailed, as_failure, describe_file_error

# Key: name of a sub-command. Value: its module in mesh.commands, and its line in `amqpmesh --help`, which is shown
# without an import of the module.
COMMANDS = {
    "demo": ("demo", "Run a mesh, send and receive on all address types, kill a router, clean up."),
    "check": ("check", "Validate a topology file and draw it."),
    "up": ("up", "Start every node of a topology and keep it running."),
    "plan": ("plan", "Show what a changed topology file would do to the mesh that `up` started."),
    "apply": ("apply", "Bring a running mesh to its changed topology file."),
    "pull": ("pull", "Write costs that were set in a running mesh into its topology file."),
    "down": ("down", "Stop all nodes that `up` started."),
    "status": ("status", "Show the nodes of a running mesh, their links and addresses."),
    "top": ("top", "Show the busiest addresses, links, clients, queues or nodes, live."),
    "watch": ("watch", "Observe the nodes on this host, and answer over HTTP."),
    "console": ("console", "Print the URL of the console, for a browser."),
    "cost": ("cost", "Change the cost of the connection between two routers of a running mesh."),
    "trace": ("trace", "Print the frames of one connection of a running node, without bodies."),
    "log-level": ("log_level", "Show or change the levels of a running node's log."),
    "node": ("node", "Run one node of a topology in this process."),
    "send": ("send", "Send messages to an address."),
    "receive": ("receive", "Receive messages from an address."),
    "user": ("user", "Add users to a topology."),
    "simulate": (
        "simulate",
        "Let routers, brokers and links of a mesh fail in virtual time, and count lost and late messages.",
    ),
    "bench": ("bench", "Measure rate, latency, CPU and memory of a router or broker."),
    "drill": ("drill", "Rehearse failures: traffic, faults from a file, a verdict and a report."),
    "report": ("report", "Report on link logs with Spark: findings, charts and tables."),
    "broker": ("broker", "Manage the queues and subscriptions of embedded brokers."),
    "store": ("store", "Check, dump, compact, back up and restore the store of a broker."),
    "linklogs": ("linklogs", "Manage link logs, the records of nodes about their traffic."),
    "certs": ("certs", "Show, issue, renew and export the certificates of a mesh."),
    "doctor": ("doctor", "Check whether this machine can run a mesh, and say what is missing."),
    "schema": ("schema", "Print the JSON Schema of topology files, for editors."),
    "explain": ("explain", "Explain an error code, a log event, an address, a client, or the access of a user."),
    "completion": ("completion", "Print the completion script of a shell."),
}
ALIASES = {"ps": "status"}

EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in MEANINGS.items())

HELP = """Run an AMQP 1.0 router mesh, with brokers behind it, from one YAML file.

\b
Examples:
  amqpmesh demo                      see it work
  amqpmesh check                     validate ./amqpmesh.yml
  amqpmesh up --detach               start it and wait until it is proven ready
  amqpmesh send orders -m hello      send to an address of the mesh
  amqpmesh receive orders -c 1       receive from it
"""


class LazyGroup(click.Group):
    """A group that imports a sub-command only to run the sub-command or to show the sub-command's help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        command = import_module(f"mesh.commands.{COMMANDS[name][0]}").command
        assert isinstance(command, click.Command)
        read_environment(command, f"AMQPMESH_{name.upper().replace('-', '_')}")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # `amqpmesh help send` is `amqpmesh send --help`; `amqpmesh help` alone is `amqpmesh --help`.
        if args[0] == "help":
            if len(args) == 1:
                click.echo(ctx.get_help())
                ctx.exit()
            args = [*args[1:], "--help"]
        if self.get_command(ctx, args[0]) is None and (near := difflib.get_close_matches(args[0], COMMANDS, 1)):
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, line) for name, (_, line) in COMMANDS.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(EPILOG)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        arguments = list(sys.argv[1:] if args is None else args)
        sys.exit(self._exit_code(arguments, prog_name or "amqpmesh", complete_var, extra))

    def _exit_code(self, arguments: list[str], prog_name: str, complete_var: str | None, extra: dict[str, Any]) -> int:
        return exit_code_of(
            lambda: super(LazyGroup, self).main(arguments, prog_name, complete_var, standalone_mode=False, **extra),
            as_json="--json" in arguments,
        )


def exit_code_of(work: Callable[[], Any], *, as_json: bool) -> int:
    """Do ``work``, report its error, if any, and return the exit code."""
    try:
        result = work()
    except MeshError as error:
        return report_failure(as_failure(error), as_json=as_json)
    except click.exceptions.NoArgsIsHelpError as asked:
        asked.show()
        return ExitCode.USAGE
    except click.ClickException as wrong:
        return report_usage(wrong, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output, such as `head`, closed the pipe: without /dev/null as stdout, the interpreter
        # would report the error once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    except OSError as error:
        # An error with a file name is about a file or folder, such as one that this user may not read, and is
        # reported without a traceback. Any other OSError here is a bug: failures of a mesh raise MeshError.
        if error.filename is None:
            raise
        return report_failure(CommandFailed(describe_file_error(error)), as_json=as_json)
    return int(result or 0)


def read_environment(command: click.Command, prefix: str) -> None:
    """Give each option of a command and its sub-commands that has no environment variable one of its own, such as
    `AMQPMESH_SEND_TIMEOUT` for `send --timeout`; hidden options get none.
    """
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            read_environment(child, f"{prefix}_{name.upper()}")
    for param in command.params:
        if isinstance(param, click.Option) and param.envvar is None and not param.hidden:
            long = next(name for name in param.opts if name.startswith("--"))
            param.envvar = f"{prefix}_{long[2:].upper().replace('-', '_')}"


def report_failure(failed: CommandFailed, *, as_json: bool) -> int:
    if as_json:
        echo_error(failed.to_map())
    else:
        click.echo(failed.message if failed.is_formatted else f"error: {failed.message}", err=True)
        if failed.fix:
            click.echo(f"fix: {failed.fix}", err=True)
    return failed.exit_code


def report_usage(wrong: click.ClickException, *, as_json: bool) -> int:
    from addressing.topology.redaction import redact_urls

    if as_json:
        echo_error({"message": redact_urls(wrong.format_message()), "exit_code": int(ExitCode.USAGE)})
    else:
        # The message repeats arguments, and an argument may be a URL with a password, which is masked here.
        shown = io.StringIO()
        wrong.show(shown)
        click.echo(redact_urls(shown.getvalue()), nl=False, err=True)
    return ExitCode.USAGE


def echo_error(error: dict[str, Any]) -> None:
    click.echo(json.dumps({"schema": "amqpmesh.error/1", "error": error}, ensure_ascii=False))


def show_version(ctx: click.Context, _option: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not ctx.resilient_parsing:
        # The version is read only here, so that no other command waits for the import of the metadata of packages.
        from mesh.terminal.version import read_version

        click.echo(f"amqpmesh {read_version()}")
        ctx.exit()


@click.command(cls=LazyGroup, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=show_version, help="Print the version."
)
def cli() -> None: ...


def main() -> None:
    cli.main(prog_name="amqpmesh")
