"""`amqpmesh explain CODE|EVENT|CONDITION`, and of a mesh: an address, a client, the access of a user"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mesh.terminal.failure import CommandFailed
from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output

if TYPE_CHECKING:
    from mesh.operations.event_catalog import DescribedEvent


USES = {"address": ("ADDRESS",), "client": ("NAME",), "access": ("USER", "ADDRESS"), "delivery": ("ADDRESS",)}
MOST_SECONDS = 60
"""By the first word, the arguments behind it."""


@click.command("explain")
@click.argument(
    "words", nargs=-1, metavar="[CODE | address ADDRESS | client NAME | access USER ADDRESS | delivery ADDRESS]"
)
@click.option(
    "--seconds",
    type=click.IntRange(1, MOST_SECONDS),
    default=10,
    show_default=True,
    help="delivery: record for so long at most.",
)
@click.option(
    "--count",
    type=click.IntRange(1, 4096),
    default=10,
    show_default=True,
    help="delivery: end after so many decisions.",
)
@topology_option
@output_options
def command(words: tuple[str, ...], seconds: int, count: int, topology_path: Path | None, out: Output) -> None:
    """Explain an error code, a log event, or a condition of AMQP; or an address, a client, or what a user may do.

    Without an argument: list all error codes.

    \b
    address  what the topology declares about ADDRESS, in which line; and in the mesh that runs here: its producers, who
             waits for what, the takers with cost and credit, which of them gets the next delivery, its queues
    client   the connections and links of a client, by container-id, id or user, and what its producers wait for
    access   whether USER may send to and receive from ADDRESS, view, browse and manage it: the pattern that allows
             it, or why none does; USER is anonymous for a client without a login
    delivery has the routers on this machine record the next deliveries of ADDRESS: which takers each could go to, with
             cost, outstanding deliveries and credit, which one it went to, why not to the others, and why it waits

    The numbers are those of the nodes' records: of the whole mesh if an observer runs on this machine, else of the
    nodes on this machine. No node is asked, except for `delivery`.

    \b
    Examples:
      amqpmesh explain AM103
      amqpmesh explain node_died
      amqpmesh explain amqp:link:detach-forced
      amqpmesh explain address orders.eu
      amqpmesh explain client till-12
      amqpmesh explain access alice orders.eu
      amqpmesh explain delivery orders.eu --seconds 30
      amqpmesh explain --json
    """
    if words and words[0] in USES:
        _explain_in_mesh(words[0], words[1:], seconds, count, topology_path, out)
        return
    if len(words) > 1:
        raise click.UsageError(f"expected one code, event or condition, or {', '.join(USES)} first: got {words[0]!r}")
    code = words[0] if words else None
    if code is None:
        list_codes(out)
    elif ":" in code:
        explain_condition(code.lower(), out)
    elif code[:2].upper() == "AM" and code[2:].isdecimal():
        explain_code(code.upper(), out)
    else:
        explain_event(code.lower(), out)


def _explain_in_mesh(
    what: str, arguments: tuple[str, ...], seconds: int, count: int, path: Path | None, out: Output
) -> None:
    from mesh.operations import explained_texts
    from mesh.terminal.topology_file import load_topology

    wanted = USES[what]
    if len(arguments) != len(wanted):
        got = f"got {len(arguments)} arguments" if arguments else "got nothing"
        raise click.UsageError(f"`explain {what}` expects {' '.join(wanted)}, {got}")
    topology = load_topology(path)
    if what == "access":
        explained_texts.show_access(topology, *arguments, out=out)
    elif what == "delivery":
        explained_texts.show_delivery(topology, *arguments, seconds=seconds, count=count, out=out)
    elif what == "address":
        explained_texts.show_address(topology, *arguments, out=out)
    else:
        explained_texts.show_client(topology, *arguments, out=out)


def list_codes(out: Output) -> None:
    from addressing.topology.codes import CODES

    if out.is_json:
        out.document({"codes": [{"code": known.code, "title": known.title} for known in CODES.values()]})
    else:
        out.table(("CODE", "MEANING"), [(known.code, known.title) for known in CODES.values()])


def explain_code(code: str, out: Output) -> None:
    from addressing.topology.codes import CODES

    known = CODES.get(code)
    if known is None:
        raise CommandFailed(f"unknown error code {code}", fix="`amqpmesh explain` lists all codes.")
    if out.is_json:
        explained = {"code": known.code, "title": known.title, "explanation": known.explanation, "fix": known.fix}
        out.document(explained)
    else:
        out.data(f"{known.code}: {known.title}\n\n{known.explanation}\n\nfix: {known.fix}")


def explain_condition(name: str, out: Output) -> None:
    from mesh.operations.conditions import CONDITIONS

    known = CONDITIONS.get(name)
    if known is None:
        raise CommandFailed(f"unknown condition {name}, expected one of {', '.join(CONDITIONS)}")
    if out.is_json:
        out.document({"condition": known.name, "meaning": known.meaning, "advice": known.advice})
    else:
        out.data(f"{known.name}\n\n{known.meaning}\n\nadvice: {known.advice}")


def explain_event(name: str, out: Output) -> None:
    import difflib

    from mesh.operations.event_catalog import described_events

    events = list(described_events())
    known = [event for event in events if event.name == name]
    if not known:
        near = difflib.get_close_matches(name, [event.name for event in events], 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise CommandFailed(
            f"{name} is not an error code such as AM103, a log event, or a condition such as amqp:not-found.{hint}",
            fix="`amqpmesh explain` lists all error codes; docs/reference/events.md lists all events.",
        )
    # A node and its supervisor each have an event `node_started`, for example.
    if out.is_json:
        described = [
            {
                "origin": event.origin,
                "module": event.module or None,
                "level": event.level,
                "fields": list(event.fields),
                "meaning": event.meaning,
            }
            for event in known
        ]
        out.document({"event": name, "events": described})
    else:
        out.data("\n\n".join(_event_text(event) for event in known))


def _event_text(event: DescribedEvent) -> str:
    fields = f"\n\nfields: {', '.join(event.fields)}" if event.fields else ""
    meaning = f"\n\n{event.meaning}" if event.meaning else ""
    module = f"\nmodule: {event.module}" if event.module else ""
    return f"{event.name} ({event.level})\n{event.origin}{module}{meaning}{fields}"
