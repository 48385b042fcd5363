"""Runs `amqpmesh linklogs compact`: merges the small files of each past hour of link logs, and prints the result."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from linklogs.compaction import CompactReport, compact
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output


def compact_and_tell(directory: Path, out: Output) -> None:
    """Merge the small files of each node and past hour of the link logs in ``directory``, and print the result.

    Raises CommandFailed if the folder is unusable, or, after printing, if some files could not be merged and are as
    before.
    """
    try:
        report = compact(directory, datetime.now(UTC))
    except BlockingIOError:
        raise CommandFailed(f"link logs in {directory} are being compacted by another process") from None
    except (FileNotFoundError, NotADirectoryError):
        raise CommandFailed(f"{directory} is not a directory: expected a directory of link logs") from None
    except OSError as error:
        raise CommandFailed(f"cannot compact the link logs in {directory}: {error.strerror or error}") from None
    if out.is_json:
        out.document({**asdict(report), "directory": str(report.directory), "findings": list(report.findings)})
    else:
        out.say(sentence(report))
        if report.put_off:
            out.say(f"{report.put_off:,} merged files are still being read: the next run deletes them")
        for finding in report.findings:
            out.say(f"not changed: {finding}")
    if report.findings:
        count = len(report.findings)
        what = "1 file or hour" if count == 1 else f"{count:,} files or hours"
        raise CommandFailed(f"{what} of link logs in {directory} cannot be merged, and stay as before")


def sentence(report: CompactReport) -> str:
    if not report.hours and not report.files_before:
        return f"nothing to do in {report.directory}: it has no files of an hour that is over in node=NAME/hour=TIME"
    if not report.hours:
        return f"nothing to do in {report.directory}: no hour that is over has more than one file of a node"
    return (
        f"{report.files_before:,} files became {report.files_after:,}, {report.bytes_before:,} bytes "
        f"{report.bytes_after:,}, in {report.hours} hour{'s' if report.hours > 1 else ''} of nodes"
    )
