"""`amqpmesh status`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output


@click.command("status")
@topology_option
@click.option("-c", "--connections", is_flag=True, help="Show also every connection.")
@click.option("-a", "--addresses", is_flag=True, help="Show also every address in use, at each router.")
@click.option("-q", "--queues", is_flag=True, help="Show also every queue and subscription of the embedded brokers.")
@output_options
def command(topology_path: Path | None, connections: bool, addresses: bool, queues: bool, out: Output) -> int:
    """Show the nodes of a running mesh, on all its hosts. With --json: the whole snapshot of each on this host.

    Of nodes on other hosts, the observers there tell (`amqpmesh watch`), by way of this host's observer, or over the
    mesh itself if none runs here. A node of which nobody can tell is unknown, with the time since it was last heard of
    and the reason; all that is known of it then is that the topology declares it.

    Below the tables: connections that are missing, and full queues that producers wait for.

    Exit code 1 when a node is not up, here or as its observer tells, or when `up` crashed and nothing restarts nodes.
    An unknown node does not count. Exit code 69 when none runs here and nobody tells of any.

    \b
    Columns of nodes:
      STATE      up; starting: no answer yet; silent: runs, but does not answer any more;
                 waiting: died, to be started again; stopping; down; unknown: on another host, nobody can tell
      PID        process id of the node
      RESTARTS   number of restarts of the node since `up`
      NEIGHBORS  routers with a connection to the node, and HELLO both ways
      BROKERS    brokers with a connection to the node
      CLIENTS    connections of clients
      DETAIL     what a node waits for, or why it died; the host of a node elsewhere, or why it is unknown

    \b
    Columns of --connections:
      KIND       client; inter-router; edge: an edge router; uplink: the router of an edge router; broker;
                 operator: an observer or a command; arriving: another node or an operator, not open yet
      CONTAINER  container-id of the peer
      REMOTE     host and port of the peer
      USER       user who logged in; none for anonymous
      LISTENER   listener that accepted the connection: clients-0 is the first of the router's `listeners`,
                 nodes the node's own port; none for a dialed connection
      LINKS      number of senders and receivers on the connection
      IN, OUT    bytes since the connection was opened

    \b
    Columns of --addresses, at that router. A pattern, such as `q.#`, has a row for the messages of links without an
    address, whose addresses share links; a pattern of queues has one for each user:
      TREATMENT  choice among consumers: balanced, closest or multicast
      PRODUCERS  links that bring messages: of clients, from other routers, from a broker
      TAKERS     links that take messages: to clients, other routers, a broker
      UNSETTLED  messages without an outcome yet
      IN, OUT    messages that arrived, and that were sent on, since the address came into use
      RELEASED   messages given back because no consumer took them

    \b
    Columns of --queues:
      ADDRESS    name of the queue, or the topic of a subscription
      SUBSCRIBER container-id and link name of a durable subscription, or the name of a shared subscription
      DURABLE    no for a queue or subscription that ends with its users, or with the broker
      AVAILABLE  messages that wait for a consumer
      ACQUIRED   messages that are with a consumer, without an outcome yet
      BYTES      size of all messages in the queue
      CONSUMERS  links that receive from it
      WAITING    producers without credit, because the queue is full

    \b
    Examples:
      amqpmesh status
      amqpmesh status -a -c -q
      watch amqpmesh ps
    """
    from mesh.operations import status
    from mesh.terminal.topology_file import load_topology

    tables = [
        table
        for table, is_wanted in (
            (status.CONNECTIONS, connections),
            (status.ADDRESSES, addresses),
            (status.QUEUES, queues),
        )
        if is_wanted
    ]
    return status.run(load_topology(topology_path), tables, out, topology_path)
