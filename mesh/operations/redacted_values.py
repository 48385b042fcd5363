"""Hashes a value, such as a user's name, as the writer of redacted link logs does, for a search in logs and reports."""

from __future__ import annotations

from addressing.topology.model import Topology
from mesh.deploy.link_log_writer import redaction_key
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output
from recording.columns import RecordKind


def hash_and_tell(topology: Topology, column: str, values: tuple[str, ...], out: Output) -> None:
    """Print for each of ``values`` its hash in ``column`` of redacted link logs.

    Raises CommandFailed if the topology does not redact the column, or the file of the key is unreadable or empty.
    """
    found = {value: hash_of(topology, column, value) for value in values}
    if out.is_json:
        out.document({"column": column, "hashes": found})
    else:
        for value in values:
            out.data(found[value])


def hash_of(topology: Topology, column: str, value: str) -> str:
    from linklogs.writer.redaction import Redactor

    redact, key = topology.link_logs.redact, redaction_key(topology)
    if redact is None or column not in redact.columns:
        hides = ", ".join(redact.columns) if redact is not None else "nothing"
        raise CommandFailed(f"link_logs: redact hides {hides}: link logs show {column} unchanged, and need no hash")
    row = Redactor(key, redact.columns).row({"kind": RecordKind.LINK, column: value})
    return str(row[column])
