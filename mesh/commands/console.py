"""`amqpmesh console`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output


@click.command("console")
@topology_option
@output_options
def command(topology_path: Path | None, out: Output) -> None:
    """Print the URL of the console, for a browser on this host.

    The console is a part of the observer, which `amqpmesh up` starts: a map of the mesh with what is wrong
    first, addresses, clients, links, queues and nodes. The URL has a one-time token, for one login within
    60 s; the login lasts for 12 hours, and may change the mesh. Only the owner of the mesh can get such a
    URL. Without a login, everybody on this host may look, until the mesh has users.

    \b
    Examples:
      amqpmesh console
      amqpmesh console -t /etc/amqpmesh/amqpmesh.yml
      xdg-open "$(amqpmesh console)"
    """
    from mesh.terminal.topology_file import load_topology
    from mesh.watch.console_url import console_url

    url = console_url(load_topology(topology_path))
    if out.is_json:
        out.document({"url": url})
    else:
        out.data(url)
