"""A network for one mesh: hosts on it keep their addresses, as machines do that are unplugged for a while."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from docker.errors import APIError
from docker.models.networks import Network as EngineNetwork
from docker.types import IPAMConfig, IPAMPool
from testcontainers.core.network import Network

from mesh_tests.containers.engine import Engine

SUBNETS = IPv4Network("10.201.0.0/16")
TAKEN = "overlaps"


class Subnet:
    def __init__(self, engine: Engine) -> None:
        self._network, subnet = _create(engine)
        self.network: EngineNetwork = engine.client.networks.get(self._network.id)
        self.addresses: Iterator[str] = map(str, subnet.hosts())
        """Those that nobody has yet."""
        next(self.addresses)  # it is the machine's own

    def remove(self) -> None:
        self._network.remove()


def _create(engine: Engine) -> tuple[Network, IPv4Network]:
    """The engine lets one choose addresses only where one chose the subnet; other runs choose from the same ones."""
    for subnet in SUBNETS.subnets(new_prefix=24):
        ipam = IPAMConfig(pool_configs=[IPAMPool(subnet=str(subnet))])
        network = Network(docker_network_kw={"driver": "bridge", "labels": engine.labels, "ipam": ipam})
        try:
            return network.create(), subnet
        except APIError as error:
            if TAKEN not in str(error):
                raise
    raise AssertionError(f"all of {SUBNETS} is taken")
