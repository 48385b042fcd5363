"""Runs one `amqpmesh bench` command: measures, shows the rows, and reports the server's violations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import click

from mesh.bench import rows
from mesh.bench.dial import BenchServer
from mesh.bench.meter import Meter, check_pid
from mesh.bench.rows import BenchRow
from mesh.bench.target import BenchAddresses, BenchTarget
from mesh.client.errors import MeshError
from mesh.client.url import DEFAULT_PORTS, AmqpUrl
from mesh.deploy.signal_exit import ended_by_signals
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.output import Output
from mesh.terminal.passwords import find_password


def run(measure: Callable[[], Iterable[BenchRow]], out: Output) -> int:
    found: list[BenchRow] = []
    with ended_by_signals():
        try:
            found.extend(measure())
        except MeshError:
            if found and not out.is_json:
                rows.show(found, out)
            raise
    rows.show(found, out)
    wrongs = [wrong for row in found for wrong in row.wrongs]
    for wrong in wrongs:
        out.say(f"wrong: {wrong}")
    return ExitCode.FAILED if wrongs else ExitCode.OK


def target_at(url: AmqpUrl, pids: Sequence[int], topic: str | None = None) -> BenchTarget:
    """Make the target for a running router or broker. Raise UsageError for a URL that a benchmark cannot use."""
    if url.host is None or not url.address:
        raise click.UsageError("expected a URL with host and address: amqp://[user[:password]@]host[:port]/address")
    if url.is_tls:
        raise click.UsageError(
            "benchmarks use plain text: expected the URL of a listener without TLS, amqp://, got amqps://"
        )
    place = BenchServer(url.host, url.port or DEFAULT_PORTS["amqp"], url.user, password_of(url))
    meter = Meter([check_pid(pid) for pid in pids]) if pids else None
    return BenchTarget(place, place, meter, 1, BenchAddresses(url.address, topic or url.address))


def password_of(url: AmqpUrl) -> str | None:
    if url.user is None or url.password is not None:
        return url.password
    return find_password(url.user, None)


def name_of(url: AmqpUrl) -> str:
    """Return the text by which a result names the address and host of ``url``: without user, password and port."""
    return f"{url.address} at {url.host}"
