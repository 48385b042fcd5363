"""`amqpmesh explain CODE|EVENT|CONDITION`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mesh.terminal.failure import CommandFailed
from mesh.terminal.options import output_options
from mesh.terminal.output import Output

if TYPE_CHECKING:
    from mesh.operations.event_catalog import DescribedEvent


@click.command("explain")
@click.argument("code", required=False)
@output_options
def command(code: str | None, out: Output) -> None:
    """Explain an error code, a log event, or a condition of AMQP. Without CODE: list all error codes.

    \b
    Examples:
      amqpmesh explain AM103
      amqpmesh explain node_died
      amqpmesh explain amqp:link:detach-forced
      amqpmesh explain --json
    """
    if code is None:
        list_codes(out)
    elif ":" in code:
        explain_condition(code.lower(), out)
    elif code[:2].upper() == "AM" and code[2:].isdecimal():
        explain_code(code.upper(), out)
    else:
        explain_event(code.lower(), out)


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
