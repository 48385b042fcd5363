"""`amqpmesh schema`"""

from __future__ import annotations

import click

from mesh.terminal.options import output_options
from mesh.terminal.output import Output


@click.command("schema")
@output_options
def command(out: Output) -> None:
    """Print the JSON Schema of topology files, for editors. The output is JSON with and without --json.

    \b
    Example:
      amqpmesh schema > amqpmesh.schema.json
      # then, as first line of the topology:
      # yaml-language-server: $schema=amqpmesh.schema.json
    """
    from addressing.topology.json_schema import topology_schema

    if out.is_json:
        out.document({"json_schema": topology_schema()})
    else:
        import json

        out.data(json.dumps(topology_schema(), indent=2))
