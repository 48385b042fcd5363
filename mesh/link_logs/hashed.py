"""What redacted link logs have in place of a value: to look for it in them, and in reports of them."""

from __future__ import annotations

from addressing.link_log import Kind
from addressing.topology import Topology
from mesh.failure import CommandFailed
from mesh.link_logs.writing import redaction_key
from mesh.output import Output


def hash_and_tell(topology: Topology, column: str, values: tuple[str, ...], out: Output) -> None:
    """Raises CommandFailed where nothing is redacted, this column is not, or the key cannot be read."""
    found = {value: hash_of(topology, column, value) for value in values}
    if out.is_json:
        out.document({"column": column, "hashes": found})
    else:
        for value in values:
            out.data(found[value])


def hash_of(topology: Topology, column: str, value: str) -> str:
    from linklogs.writer.redacting import Redactor

    redact, key = topology.link_logs.redact, redaction_key(topology)
    if redact is None or column not in redact.columns:
        hides = ", ".join(redact.columns) if redact is not None else "nothing"
        raise CommandFailed(f"link_logs: redact hides {hides}: {column} is as it is in link logs")
    row = Redactor(key, redact.columns).row({"kind": Kind.LINK, column: value})
    return str(row[column])
