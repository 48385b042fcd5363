"""`amqpmesh explain CODE`"""

from __future__ import annotations

import click

from mesh.terminal.failure import CommandFailed
from mesh.terminal.options import output_options
from mesh.terminal.output import Output


@click.command("explain")
@click.argument("code", required=False)
@output_options
def command(code: str | None, out: Output) -> None:
    """Explain an error code, such as AM103. Without CODE: list them all.

    \b
    Examples:
      amqpmesh explain AM103
      amqpmesh explain --json
    """
    if code is None:
        list_codes(out)
    else:
        explain_code(code.upper(), out)


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
