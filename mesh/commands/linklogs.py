"""`amqpmesh linklogs write|compact|pack|hash|generate`"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from addressing.records import PERSONAL_COLUMNS
from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output
from mesh.terminal.units import COUNT, DURATION


@click.group("linklogs")
def command() -> None:
    """Look after link logs: what the nodes of a mesh record of their traffic."""


@command.command("write")
@topology_option
@click.option(
    "--as-read", type=click.Path(path_type=Path), hidden=True, help="Copy of the topology file, made by `up`."
)
@output_options
def write(topology_path: Path | None, as_read: Path | None, out: Output) -> None:
    """Write the records of a mesh's nodes on this host to files, until SIGTERM or Ctrl-C.

    This is what `up` starts beside the nodes, unless the topology says `link_logs: "off"`. On a host
    that runs `amqpmesh node` for each node, run a writer as well. The log of the writer is on stderr, one JSON
    object a line.

    \b
    Example:
      amqpmesh linklogs write -t /etc/amqpmesh/amqpmesh.yml
    """
    from mesh.deploy.link_log_writer import write
    from mesh.terminal.topology_file import load_file

    write(load_file(topology_path, copy=as_read).topology)


@command.command("compact")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@output_options
def compact_it(directory: Path, out: Output) -> None:
    """Merge the small files of each node and past hour into one file, or into a few of up to 32 MiB.

    DIR is `folder` of `link_logs`, or linklogs in the work directory. Readers and writers of DIR may go on meanwhile.
    Unreadable files stay as they are.

    \b
    Example:
      amqpmesh linklogs compact .amqpmesh/shop/linklogs
    """
    from mesh.operations.log_compaction import compact_and_tell

    compact_and_tell(directory, out)


@command.command("pack")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@output_options
def pack(directory: Path, out: Output) -> None:
    """Pack the files that spark-submit needs into DIR: linklogs.zip, and amqpmesh_report.py, which spark-submit starts.

    The cluster needs no installed amqpmesh. The command prints the spark-submit command for the job.

    \b
    Example:
      amqpmesh linklogs pack job
    """
    from mesh.operations.job_archive import pack_and_tell

    pack_and_tell(directory, out)


@command.command("hash", context_settings={"show_default": True})
@topology_option
@click.option(
    "--column", type=click.Choice(PERSONAL_COLUMNS), default="address", help="Column that the values belong to."
)
@click.argument("values", metavar="VALUE...", nargs=-1, required=True)
@output_options
def hash_them(topology_path: Path | None, column: str, values: tuple[str, ...], out: Output) -> None:
    """Print the hash that link logs with `redact` have in place of each VALUE, one a line.

    With the key, you find an address or a user in a report of such logs; without the key, you do not.

    \b
    Examples:
      amqpmesh linklogs hash orders
      amqpmesh linklogs hash --column user alice bob
      amqpmesh report linklogs --out report --address "$(amqpmesh linklogs hash orders)"
    """
    from mesh.operations.redacted_values import hash_and_tell
    from mesh.terminal.topology_file import load_topology

    hash_and_tell(load_topology(topology_path), column, values, out)


@command.command("generate", context_settings={"show_default": True})
@topology_option
@click.option(
    "--out",
    "directory",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="New directory for the files.",
)
@click.option(
    "--profile",
    "profile_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="YAML file that describes the traffic.",
)
@click.option(
    "--records", type=COUNT, help="Approximate number of records at level full, such as 10m. [default: by the rate]"
)
@click.option(
    "--duration", "duration_s", type=DURATION, help="Time that the records cover. [default: the profile's, or 1h]"
)
@click.option(
    "--level", type=click.Choice(("full", "summary")), default="full", help="Level of the records of traffic."
)
@click.option("--seed", type=click.IntRange(0), default=1, help="Seed of all random choices.")
@click.option(
    "--start",
    type=click.DateTime(("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")),
    default="2026-01-05",
    help="Time of the first record, in UTC.",
)
@output_options
def generate(
    topology_path: Path | None,
    directory: Path,
    profile_path: Path | None,
    records: int | None,
    duration_s: float | None,
    level: str,
    seed: int,
    start: datetime,
    out: Output,
) -> None:
    """Make up link logs of a topology, of any size, to try reports on; DIR/_truth.json has what they add up to.

    The same options make the same files, byte by byte.

    \b
    Examples:
      amqpmesh linklogs generate --out logs --records 1m
      amqpmesh linklogs generate --out day --duration 24h --profile traffic.yml --level summary
    """
    from addressing.records import Level
    from mesh.sample_logs.generate import run
    from mesh.sample_logs.profile import Profile
    from mesh.sample_logs.profile_file import read_profile
    from mesh.terminal.topology_file import load_topology

    topology = load_topology(topology_path)
    profile = Profile() if profile_path is None else read_profile(profile_path, topology)
    begins_us = int(start.replace(tzinfo=UTC).timestamp()) * 1_000_000
    run(
        topology,
        profile,
        directory,
        begins_us=begins_us,
        duration_s=profile.duration if duration_s is None else duration_s,
        records=records,
        seed=seed,
        level=Level(level),
        out=out,
    )
