"""One node of a mesh in a container of its own: what is in there, and what can happen to it?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from docker.models.networks import Network
from docker.types import EndpointConfig
from testcontainers.core.container import DockerContainer

from mesh_tests.containers.engine import Engine
from mesh_tests.running_mesh import AMQPMESH

CHECKOUT = Path(__file__).parents[2]
LINKED = Path("/etc/ld.so.cache")
NO_NAMES = "127.0.0.1"


class Host:
    """Runs `amqpmesh node NAME` from the constructor on; reached by its name, and under the same address for ever."""

    def __init__(self, engine: Engine, network: Network, name: str, ip: str, folder: Path) -> None:
        self.name, self.ip = name, ip
        self._network = network
        address = EndpointConfig(engine.client.api.api_version, aliases=[name], ipv4_address=ip)
        container = (
            DockerContainer(engine.image)
            .with_command([AMQPMESH, "node", name, "-t", str(folder / "amqpmesh.yml")])
            .with_env("PYTHONPATH", str(CHECKOUT))
            .with_volume_mapping(str(folder), str(folder), "rw")
            .with_kwargs(
                hostname=name,
                labels=engine.labels,
                network=network.name,
                networking_config={network.name: address},
                # A name that is off the network must not be asked for elsewhere: that takes long.
                dns=[NO_NAMES],
            )
        )
        for path in _read_only():
            container.with_volume_mapping(str(path), str(path), "ro")
        self._container = container.start().get_wrapped_container()

    def pause(self) -> None:
        """Nothing in it runs, and nobody is told."""
        self._container.pause()

    def unpause(self) -> None:
        self._container.unpause()

    def kill(self) -> None:
        self._container.kill()
        self._container.wait()

    def start(self) -> None:
        self._container.start()

    def restart(self) -> None:
        """Stopped in order, and started."""
        self._container.restart()

    def disconnect(self) -> None:
        """Like a cable that is pulled out."""
        self._network.disconnect(self._container)

    def reconnect(self) -> None:
        self._network.connect(self._container, aliases=[self.name], ipv4_address=self.ip)

    def remove(self) -> None:
        self._container.remove(force=True)

    def log(self) -> str:
        return self._container.logs().decode(errors="replace")


def _read_only() -> Iterator[Path]:
    """Where the machine has Python, amqpmesh and what they are linked to: none of it in another."""
    wanted = {Path("/usr"), LINKED, CHECKOUT, Path(sys.prefix), Path(sys.base_prefix)}
    return (path for path in wanted if path.exists() and not any(parent in wanted for parent in path.parents))
