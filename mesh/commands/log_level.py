"""`amqpmesh log-level`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output

LEVELS = ("debug", "info", "warning", "error")


@click.command("log-level")
@click.argument("node")
@click.argument("module", required=False)
@click.argument("level", required=False, type=click.Choice(LEVELS))
@topology_option
@output_options
def command(node: str, module: str | None, level: str | None, topology_path: Path | None, out: Output) -> None:
    """Show or change the levels of a running node's log.

    A node writes events of level info and above. LEVEL is the lowest level that it writes from now on: of MODULE and of
    the modules below, or of all modules. The node is not started again, and once it is, it has level info.

    The reference of events (docs/reference/events.md) and `amqpmesh explain EVENT` name the module of each event.

    \b
    Modules with events of level debug:
      router.clients   what a router decides about each attach of a client
      router.routes    links to queues and topics: waits for the broker, lost paths
      router.routing   each change of a cheapest path
      recording        senders without credit, with the cause
      broker           each link that a broker accepts

    \b
    Examples:
      amqpmesh log-level r1
      amqpmesh log-level r1 router.routes debug
      amqpmesh log-level r1 warning
      amqpmesh log-level r1 info
    """
    from mesh.operations.node_requests import ask_node, change_node
    from mesh.terminal.topology_file import load_topology

    topology = load_topology(topology_path)
    if level is None and module in LEVELS:
        module, level = None, module
    if level is None:
        if module is not None:
            raise click.UsageError(f"a level for {module} is missing: expected one of {', '.join(LEVELS)}")
        found = ask_node(topology, node, "log_levels")
        if out.is_json:
            out.document({"node": node, "levels": found})
        else:
            out.table(("MODULE", "LEVEL"), [(name or "(all)", each) for name, each in found.items()])
        return
    settings = ask_node(topology, node, "log_levels") if module is None else {}
    answer = change_node(topology, node, "log_level", node, module=module or "", level=level)
    before = answer["before"]
    text = f"{node}: {module or 'all modules'} at level {level}, {'as before' if before == level else f'was {before}'}"
    ended = [f"{name} ({each})" for name, each in settings.items() if name and each != level]
    if ended:
        text += f"; no longer at levels of their own: {', '.join(ended)}"
    out.say(f"{text}; until {node} ends")
    if out.is_json:
        out.document({"node": node, **answer})
