"""`amqpmesh store check|dump|compact|backup|restore|salvage`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.terminal.options import output_options
from mesh.terminal.output import Output

directory_argument = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))


@click.group("store")
def command() -> None:
    """Look after the data directory of an embedded broker.

    DIR is what `data` of the broker says in the topology file.
    """


@command.command("check")
@directory_argument
@output_options
def check_all(directory: Path, out: Output) -> None:
    """Prove every message, index and total of a store that no broker uses. Nothing is written.

    \b
    Columns:
      ADDRESS    name of the queue, or the topic of a subscription
      SUBSCRIBER container-id and link name of the subscriber, or the name of a shared subscription
      MESSAGES   messages in the queue, including messages that were with a consumer
      BYTES      size of all messages in the queue
      DELIVERED  messages that were delivered before

    \b
    Examples:
      amqpmesh store check data/b1
      amqpmesh store check data/b1 --json | jq .findings
    """
    from broker.store.store_check import check
    from mesh.operations.store_report import tell, told

    with told():
        report = check(directory)
    tell(report, out)


@command.command("dump")
@directory_argument
@click.option("-a", "--address", metavar="ADDRESS", help="Print only messages of this queue or topic filter.")
@output_options
def dump_all(directory: Path, address: str | None, out: Output) -> None:
    """Print the messages of a store that no broker uses, one JSON document a line, as `receive --json` does.

    For a body above 64 KiB, the file name is printed. A message that is not as it was written has `"damaged": true`.
    Nothing is written.

    \b
    Example:
      amqpmesh store dump data/b1 -a orders > orders.jsonl
    """
    from broker.store.dump import stored_messages
    from broker.store.read_store import reading
    from mesh.operations.store_report import message_map, told

    with told(), reading(directory) as store:
        for what in store.missing:
            out.say(f"warning: {what}")
        for stored in stored_messages(store, address):
            out.document(message_map(stored))


@command.command("compact")
@directory_argument
@output_options
def compact_it(directory: Path, out: Output) -> None:
    """Free the disk space of deleted messages. No broker may use the store meanwhile.

    \b
    Example:
      amqpmesh store compact data/b1
    """
    from broker.store.compaction import compact
    from mesh.operations.store_report import told

    with told():
        before, after = compact(directory)
    if out.is_json:
        out.document({"before_bytes": before, "after_bytes": after})
    else:
        out.say(f"{before:,} bytes became {after:,}")


@command.command("backup")
@directory_argument
@click.argument("copy", type=click.Path(path_type=Path))
@output_options
def back_it_up(directory: Path, copy: Path, out: Output) -> None:
    """Copy a store, as it is at one moment, to a new directory COPY. A running broker may go on using the store
    meanwhile; a stopped broker cannot start meanwhile.

    \b
    Example:
      amqpmesh store backup data/b1 /backup/b1-$(date +%F)
    """
    from broker.store.copying import back_up
    from mesh.operations.store_report import tell, told

    with told():
        report = back_up(directory, copy)
    tell(report, out)


@command.command("restore")
@click.argument("copy", type=click.Path(path_type=Path))
@directory_argument
@output_options
def restore_it(copy: Path, directory: Path, out: Output) -> None:
    """Make a new DIR from a backup. Messages settled since the backup are delivered again.

    \b
    Example:
      amqpmesh store restore /backup/b1-2026-11-22 data/b1
    """
    from broker.store.copying import restore
    from mesh.operations.store_report import tell, told

    with told():
        report = restore(copy, directory)
    tell(report, out)


@command.command("salvage")
@directory_argument
@click.argument("copy", metavar="NEW", type=click.Path(path_type=Path))
@output_options
def salvage_it(directory: Path, copy: Path, out: Output) -> None:
    """Save what can be read of a damaged store into a new directory NEW, and count it. DIR stays as it is.

    This is for a broker that ended with exit code 74, since files of its store are damaged, missing or older than the
    others. Let `data` of the broker name NEW then, or move NEW to where DIR was.

    \b
    Example:
      amqpmesh store salvage data/b1 data/b1-salvaged
    """
    from broker.store.store_salvage import salvage
    from mesh.operations.store_report import tell_salvaged, told

    with told():
        salvaged = salvage(directory, copy)
    tell_salvaged(salvaged, out)
