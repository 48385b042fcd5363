"""Runs `amqpmesh trace`: asks a node for a trace of one of its connections, and prints the lines of its file."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from addressing.topology.model import Topology
from mesh.client.errors import Unreachable
from mesh.operations.host_watch import watching
from mesh.operations.node_requests import change_node
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output

_EVERY_S: Final = 0.1
_MARGIN_S: Final = 5.0
"""Time after the end of a trace in which its last line has to come; without it, the node has died."""
_SHOWN: Final = 10


def trace(topology: Topology, node: str, connection: str, for_s: float, out: Output) -> None:
    """Print a trace of ``connection``, a number, id or container-id, for ``for_s`` seconds.

    Raises UsageError, CommandFailed or Unreachable as `ask_node`; CommandFailed also if not exactly one connection of
    the node has the container-id.
    """
    number = find_connection(topology, node, connection)
    target = f"{node}/{number}"
    answer = change_node(topology, node, "trace", target, connection=number, seconds=for_s)
    file = Path(answer["file"])
    out.say(f"tracing connection {node}/{number} for {for_s:g} s, into {file}")
    try:
        for line in _lines(file, for_s + _MARGIN_S):
            if out.is_json:
                out.document(line)
            else:
                out.data(text_of(line))
    except KeyboardInterrupt:
        with suppress(CommandFailed, Unreachable):
            change_node(topology, node, "trace", target, connection=number, seconds=0)
        raise


def find_connection(topology: Topology, node: str, connection: str) -> int:
    """Return the number of a connection by its number, its id such as `r1/7`, or the container-id of its peer."""
    text = connection.removeprefix(f"{node}/")
    if text.isdecimal():
        return int(text)
    with watching(topology) as watch:
        watch.look()
        observed = watch.host.nodes.get(node)
        connections = observed.connections if observed is not None else {}
        found = [number for number, each in connections.items() if each.container == connection]
        names = sorted({each.container for each in connections.values() if each.container})
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(f"{node}/{number}" for number in found[:_SHOWN]) + (", ..." if found[_SHOWN:] else "")
        raise CommandFailed(
            f"{len(found)} connections of {node} have the container-id {connection!r}: {ids}; name one of them",
            exit_code=ExitCode.USAGE,
        )
    few = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if names[_SHOWN:] else "")
    raise CommandFailed(
        f"no connection of {node} has the container-id {connection!r}: expected a number, or one of {few or 'none'}",
        fix="`amqpmesh top clients` shows the connections of clients.",
        exit_code=ExitCode.USAGE,
    )


def _lines(file: Path, within_s: float) -> Iterator[dict[str, Any]]:
    """Yield the lines of ``file`` as they come, up to the last one. Raises Unreachable if that comes too late."""
    until = time.monotonic() + within_s
    with file.open() as stream:
        kept = ""
        while True:
            kept += stream.readline()
            if kept.endswith("\n"):
                line, kept = json.loads(kept), ""
                yield line
                if "ended" in line:
                    return
                continue
            if time.monotonic() > until:
                raise Unreachable("the node wrote no end of the trace: it may have died")
            time.sleep(_EVERY_S)


def text_of(line: dict[str, Any]) -> str:
    """Return a line of a trace for people: time, arrow (`<-` from the peer), channel, performative and its fields."""
    at = line["ts"][11:26]
    if "ended" in line:
        return f"{at} ended after {line['frames']:,} frames: {line['ended']}"
    arrow = "<-" if line["direction"] == "in" else "->"
    parts = [at, arrow, f"ch{line['channel']}" if "channel" in line else "", line["frame"]]
    parts += [f"{name}={_short(value)}" for name, value in line.get("fields", {}).items()]
    if "payload_bytes" in line:
        parts.append(f"payload={line['payload_bytes']:,} bytes")
    if "error" in line:
        parts.append(line["error"])
    if "skipped" in line:
        parts.append(f"SKIPPED {line['skipped']:,} frames before")
    return " ".join(filter(None, parts))


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list, str)) else str(value).lower()
