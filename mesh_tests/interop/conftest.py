"""Brokers, once for the whole run and only when a test asks for them; clients, new for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mesh_tests.installed import require
from mesh_tests.interop.artemis import Artemis
from mesh_tests.interop.clients import client as clients
from mesh_tests.interop.rabbitmq import RabbitMQ


@pytest.fixture(scope="session")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    require(RabbitMQ.is_installed(), "RabbitMQ (Debian: rabbitmq-server)")
    broker = RabbitMQ(tmp_path_factory.mktemp("rabbitmq"))
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def artemis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Artemis]:
    require(Artemis.is_installed(), "ActiveMQ Artemis (Maven Central) and Java 17")
    broker = Artemis(tmp_path_factory.mktemp("artemis"))
    yield broker
    broker.stop()


@pytest.fixture
def new_client(tmp_path: Path) -> Iterator[Callable[[type[clients.Client]], clients.Client]]:
    """Makes clients; whatever they started is gone at the end of the test."""
    made: list[clients.Client] = []

    def make(kind: type[clients.Client]) -> clients.Client:
        if kind.is_optional and not kind.is_installed():
            pytest.skip(f"needs {kind.needs}: run `make peers`")
        require(kind.is_installed(), kind.needs)
        made.append(kind(tmp_path / f"{kind.name}-{len(made)}"))
        return made[-1]

    yield make
    for client in made:
        client.stop()


@pytest.fixture(params=clients.ALL, ids=lambda kind: kind.name)
def client(request: pytest.FixtureRequest, new_client: Callable[..., clients.Client]) -> clients.Client:
    return new_client(request.param)
