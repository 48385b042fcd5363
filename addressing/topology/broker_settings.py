"""Settings of a broker in a topology file.

Units: ``_bytes`` octets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from addressing.topology.broker_url import parse_broker_url
from addressing.topology.part import Host, NodeNames, Port, TopologyPart, checked
from addressing.topology.queries import BrokerQueries, Subscriptions

# Default port of an embedded broker that is the first broker of the file; each later position has a port one higher.
# The reasons for the number stand at FIRST_ROUTER_PORT in addressing.topology.model.
FIRST_BROKER_PORT = 27671


class BrokerTls(TopologyPart):
    """The section ``tls`` of a broker in a topology file: TLS of the routers' connections to an existing broker."""

    ca: Path | None = None
    """PEM file with the authorities to trust (default: the authorities of this machine)."""
    cert: Path | None = None
    """PEM file with a client certificate."""
    key: Path | None = None
    """PEM file with the private key of the client certificate."""
    verify_hostname: bool = True
    """false accepts a certificate that was issued for another host."""


class Broker(TopologyPart, BrokerQueries):
    """A broker that keeps queues and topics: embedded in the mesh (`data`) or existing (`url`)."""

    data: Path | None = None
    """Folder of an embedded broker's store, relative to the topology file."""
    host: Host = "127.0.0.1"
    """Host where routers reach the embedded broker, and where the broker listens."""
    port: Port = Field(default=FIRST_BROKER_PORT, json_schema_extra={"default": None})
    """Port for routers (default: 27671 plus the position of the broker in the file, from 0)."""
    disk_free_min_bytes: int | None = Field(default=None, ge=0)
    """Producers wait while the disk has less left (default: 5 % or 1 GiB, the larger, at most 1/4 of it); 0: never."""
    url: Annotated[str, checked(parse_broker_url)] | None = Field(default=None, repr=False)
    """Existing broker: amqp://user:password@host:port, or amqps:// for TLS."""
    routers: NodeNames = ()
    """Routers that connect to the broker (default: all but edges)."""
    address_prefix: str = ""
    """Existing broker: prefix of queue names at the broker, such as /queue/ for RabbitMQ 3."""
    hostname: str | None = None
    """Existing broker: hostname to open connections with; for RabbitMQ 'vhost:NAME' chooses a virtual host."""
    subscriptions: Subscriptions = Subscriptions.BY_NAME
    """Existing broker: 'by_user' keeps subscriptions of users apart; subscriptions by name are no longer found."""
    share_connections: bool = False
    """Existing broker: true lets the links of many clients share connections; durable links stay apart."""
    tls: BrokerTls = BrokerTls()
    """Existing broker: how to check an amqps:// broker."""
