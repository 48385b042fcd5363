"""`amqpmesh bench` at scale: what very many addresses, connections and consumers cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mesh.commands.bench_options import BodySize, check, server_options
from mesh.terminal.options import output_options
from mesh.terminal.output import Output
from mesh.terminal.units import DURATION, RATE

if TYPE_CHECKING:
    from mesh.client.url import AmqpUrl

ADDRESS_TYPES = ("topic", "queue", "anycast", "multicast")
# The most connections that one loop of the generator polls.
MOST_CONNECTIONS = 1000
# The most messages whose latencies `bench busy` keeps.
MOST_TIMED_MESSAGES = 100_000_000

repeat_option = click.option(
    "-n", "--repeat", type=click.IntRange(1), default=3, help="Number of runs of each row; figures are medians."
)


@click.command("addresses", context_settings={"show_default": True})
@click.option("-a", "--addresses", type=click.IntRange(1, 10**9), default=100_000, help="Number of addresses.")
@click.option(
    "-c", "--messages", type=click.IntRange(1), default=1_000_000, help="Number of messages of all senders in each run."
)
@click.option(
    "--senders", type=click.IntRange(1, MOST_CONNECTIONS), default=1, help="Number of senders, each on a connection."
)
@click.option(
    "--type",
    "kind",
    type=click.Choice(ADDRESS_TYPES),
    default=ADDRESS_TYPES[0],
    help="Type of the addresses; with --url, the type that the server gives them.",
)
@click.option("--line", "is_line", is_flag=True, help="Three routers, and a receiver for each address at the last.")
@click.option("-s", "--body", type=BodySize(), default="100", help="Size of a message body, such as 10k.")
@click.option("--idle", "idle_s", type=DURATION, default="70s", help="Read the memory again after this time; 0: never.")
@click.option(
    "--deadline", "deadline_s", type=DURATION, default="5m", help="Give up when a run takes longer than this time."
)
@repeat_option
@server_options
@output_options
def addresses_command(out: Output, url: AmqpUrl | None, pids: tuple[int, ...], **options: Any) -> int:
    """Measure messages to very many addresses, sent on links without an address.

    Each message names its address in the field `to`; message n goes to `bench.n`, and from the start again after the
    last address. The addresses belong to one pattern, and nobody receives: topics and multicasts drop the messages,
    queues keep them, anycasts may release them. Each process has a row: CPU for each message, and BYTES/ADDRESS, the
    growth of its memory for each address, after the last message and after --idle.

    With --line, each message is received: three routers stand in line, the senders are at the first, and a receiver for
    each address, with credit 10, is at the last. This is for type anycast, and not for --url.

    With --url, the addresses are ADDRESS.RUN.n, with a RUN of its own for each run, and all must exist at the server.

    \b
    Examples:
      amqpmesh bench addresses
      amqpmesh bench addresses --type queue --addresses 10000 --senders 10 --json
      amqpmesh bench addresses --url amqp://localhost/news --pid 4711
    """
    from mesh.bench import addresses, session

    check(url, pids, options, False)
    if options["is_line"] and (url is not None or options["kind"] != "anycast"):
        raise click.UsageError("--line starts routers of its own: expected --type anycast, and no --url")
    order = addresses.AddressesBenchRequest(
        type=options["kind"],
        addresses=options["addresses"],
        senders=options["senders"],
        messages=options["messages"],
        body_bytes=options["body"],
        idle_s=options["idle_s"],
        repeat=options["repeat"],
        is_line=options["is_line"],
        stall_s=options["stall_s"],
        deadline_s=options["deadline_s"],
    )
    if url is None:
        return session.run(lambda: addresses.measure_ours(order, out), out)
    target = session.target_at(url, pids)
    return session.run(lambda: addresses.measure_theirs(target, session.name_of(url), order, out), out)


@click.command("attaches", context_settings={"show_default": True})
@click.option("--connections", type=click.IntRange(1), default=20, help="Number of connections that attach links.")
@click.option("-c", "--links", type=click.IntRange(1), default=1000, help="Number of links of each connection.")
@click.option(
    "--crowd", type=click.IntRange(1), default=8, help="Number of connections that attach links while others wait."
)
@click.option("--per-session", type=click.IntRange(1, 65536), default=64, help="Number of links in each session.")
@click.option("--shared", "is_shared", is_flag=True, help="Attach all links to one address, in place of one each.")
@repeat_option
@server_options
@output_options
def attaches_command(out: Output, url: AmqpUrl | None, pids: tuple[int, ...], **options: Any) -> int:
    """Measure CPU time to open connections and attach links, and how long others wait meanwhile.

    First, connections are opened one after the other, with a receiver each; then all attach their receivers at once.
    CPU EACH is the time for each connection or link, until the router is idle again, without the time that an idle
    router takes. The other rows are the latency of a message each 10 ms on connections of its own: alone, and while
    --crowd connections attach their links at once.

    With --url, links are on ADDRESS.n, or on ADDRESS with --shared, and the messages go to ADDRESS.bystander.

    \b
    Examples:
      amqpmesh bench attaches
      amqpmesh bench attaches --links 5000 --shared --json
    """
    from mesh.bench import attaches, session

    check(url, pids, options, False)
    order = attaches.AttachesBenchRequest(
        connections=options["connections"],
        links=options["links"],
        crowd=options["crowd"],
        per_session=options["per_session"],
        is_shared=options["is_shared"],
        repeat=options["repeat"],
        stall_s=options["stall_s"],
    )
    if url is None:
        return session.run(lambda: attaches.measure_ours(order, out), out)
    target = session.target_at(url, pids)
    return session.run(lambda: attaches.measure(target, session.name_of(url), order, out), out)


@click.command("cycles", context_settings={"show_default": True})
@click.option("-c", "--cycles", type=click.IntRange(1), default=3000, help="Number of cycles in each run.")
@click.option(
    "--at-once",
    multiple=True,
    type=click.IntRange(1, 1000),
    default=(1, 8),
    help="Number of cycles under way at once. Repeatable.",
)
@repeat_option
@server_options
@output_options
def cycles_command(out: Output, url: AmqpUrl | None, pids: tuple[int, ...], **options: Any) -> int:
    """Measure clients that connect, attach, send one message, wait for its outcome, and close.

    CPU EACH is the time of the router for such a cycle, with the delivery of the message to a consumer. One process
    runs all cycles; GENERATOR is its own CPU for each. With --url, users log in with PLAIN.

    \b
    Examples:
      amqpmesh bench cycles
      amqpmesh bench cycles --at-once 32 --url amqp://localhost/orders --pid 4711
    """
    from mesh.bench import cycles, session

    check(url, pids, options, False)
    order = cycles.CyclesBenchRequest(options["cycles"], options["at_once"], options["repeat"], options["stall_s"])
    if url is None:
        return session.run(lambda: cycles.measure_ours(order, out), out)
    target = session.target_at(url, pids)
    return session.run(lambda: cycles.measure(target, session.name_of(url), order, out), out)


@click.command("fan", context_settings={"show_default": True})
@click.option("-y", "--consumers", type=click.IntRange(1), default=1000, help="Number of consumers.")
@click.option(
    "--connections",
    multiple=True,
    type=click.IntRange(1),
    default=(1000, 10),
    help="Number of connections to spread the consumers over. Repeatable.",
)
@click.option("-c", "--messages", type=click.IntRange(1), default=300_000, help="Number of messages in each run.")
@click.option("-s", "--body", type=BodySize(), default="100", help="Size of a message body, such as 10k.")
@click.option("--window", type=click.IntRange(1), default=100, help="Credit of each consumer.")
@repeat_option
@server_options
@output_options
def fan_command(out: Output, url: AmqpUrl | None, pids: tuple[int, ...], **options: Any) -> int:
    """Measure one sender to very many consumers of an anycast address.

    SHARES DIFFER BY is the largest share of a consumer divided by the smallest, less one; without this figure, some
    consumers had no message at all.

    \b
    Examples:
      amqpmesh bench fan
      amqpmesh bench fan --consumers 100 --connections 1 --url amqp://localhost/orders --pid 4711
    """
    from mesh.bench import crowd, fan, session

    check(url, pids, options, False)
    for connections in options["connections"]:
        if not connections <= options["consumers"] <= connections * crowd.MOST_LINKS:
            raise click.UsageError(
                f"--connections {connections} with --consumers {options['consumers']}: expected 1 to "
                f"{crowd.MOST_LINKS} consumers on each connection"
            )
    order = fan.FanBenchRequest(
        consumers=options["consumers"],
        connections=options["connections"],
        messages=options["messages"],
        body_bytes=options["body"],
        window=options["window"],
        repeat=options["repeat"],
        stall_s=options["stall_s"],
    )
    if url is None:
        return session.run(lambda: fan.measure_ours(order, out), out)
    target = session.target_at(url, pids)
    return session.run(lambda: fan.measure(target, session.name_of(url), order, out), out)


@click.command("footprint", context_settings={"show_default": True})
@click.option("--idle", "idle_s", type=DURATION, default="2s", help="Leave the processes alone for this time first.")
@click.option(
    "--for", "busy_s", type=DURATION, default="0s", help="Measure again after this time with one message a second."
)
@repeat_option
@server_options
@output_options
def footprint_command(out: Output, url: AmqpUrl | None, pids: tuple[int, ...], **options: Any) -> int:
    """Measure the memory of `amqpmesh up` with one router: supervisor, router, writer of link logs.

    PSS is the proportional set size: memory that processes share counts in parts, so that the row *together* is the
    memory of the whole. RESIDENT counts shared memory in full. With --pid, running processes and their children are
    measured; --for then needs --url.

    \b
    Examples:
      amqpmesh bench footprint
      amqpmesh bench footprint --for 10m --repeat 1
      amqpmesh bench footprint --pid 4711 --url amqp://localhost/orders --for 1m
    """
    from mesh.bench import footprint, session
    from mesh.bench.meter import check_pid

    if url is not None and not pids:
        raise click.UsageError("--url needs --pid, the process to measure")
    if pids and options["busy_s"] and url is None:
        raise click.UsageError("--for with --pid needs --url, the address for the messages")
    order = footprint.FootprintBenchRequest(options["idle_s"], options["busy_s"], options["repeat"], options["stall_s"])
    if not pids:
        return session.run(lambda: footprint.measure_ours(order, out), out)
    for pid in pids:
        check_pid(pid)
    target = session.target_at(url, pids) if url is not None else None
    line = session.name_of(url) if url is not None else f"process {', '.join(map(str, pids))}"
    return session.run(lambda: footprint.measure_theirs(target, line, pids, order, out), out)


@click.command("handshakes", context_settings={"show_default": True})
@click.option("--at-once", type=click.IntRange(1, 256), default=4, help="Number of handshakes under way at once.")
@click.option("-d", "--seconds", type=DURATION, default="5s", help="Duration of a run, such as 30s.")
@click.option("--tls-port", type=click.IntRange(1, 65535), help="Port of the TLS listener at the host of --url.")
@repeat_option
@server_options
@output_options
def handshakes_command(
    out: Output, url: AmqpUrl | None, pids: tuple[int, ...], tls_port: int | None, **options: Any
) -> int:
    """Measure TLS handshakes, and how long others wait meanwhile.

    Each handshake is a full one, on a connection that is closed after it. The other rows are the latency of a message
    each 10 ms on connections in plain text: alone, and beside the handshakes. The certificate is not checked.

    With --url, --tls-port names the listener for the handshakes, and the messages go to ADDRESS.bystander.

    \b
    Examples:
      amqpmesh bench handshakes
      amqpmesh bench handshakes --at-once 16 --url amqp://localhost/orders --tls-port 5671 --pid 4711
    """
    from mesh.bench import handshakes, session

    check(url, pids, options, False)
    if options["seconds"] <= 0:
        raise click.UsageError("--seconds must be longer than 0")
    order = handshakes.HandshakesBenchRequest(
        options["at_once"], options["seconds"], options["repeat"], options["stall_s"]
    )
    if url is None or tls_port is None:
        if url is not None or tls_port is not None:
            raise click.UsageError("expected both --url and --tls-port, or none of both")
        return session.run(lambda: handshakes.measure_ours(order, out), out)
    target = session.target_at(url, pids)
    return session.run(lambda: handshakes.measure_theirs(target, tls_port, session.name_of(url), order, out), out)


@click.command("busy", context_settings={"show_default": True})
@click.option("--connections", type=click.IntRange(1), default=2000, help="Number of connections that send.")
@click.option(
    "-y", "--consumers", type=click.IntRange(1), default=10, help="Number of consumers, each on a connection."
)
@click.option("-r", "--rate", type=RATE, default="10000/s", help="Rate of all messages together, such as 500/s.")
@click.option("-d", "--seconds", type=DURATION, default="10s", help="Duration of a run, such as 30s.")
@click.option("-s", "--body", type=BodySize(), default="100", help="Size of a message body, such as 10k.")
@repeat_option
@server_options
@output_options
def busy_command(out: Output, url: AmqpUrl | None, pids: tuple[int, ...], **options: Any) -> int:
    """Measure very many connections that send messages in turn, at an even rate.

    The time of a message begins when the message is due, so the wait for credit counts. One process has all
    connections, and one clock; GENERATOR is its own CPU for each message.

    \b
    Examples:
      amqpmesh bench busy
      amqpmesh bench busy --connections 500 --rate 1000/s --url amqp://localhost/orders --pid 4711
    """
    from mesh.bench import busy, session

    check(url, pids, options, False)
    if not 1 <= options["rate"] * options["seconds"] < MOST_TIMED_MESSAGES:
        raise click.UsageError(
            f"--rate times --seconds must be at least 1 and less than {MOST_TIMED_MESSAGES:,} messages"
        )
    order = busy.BusyBenchRequest(
        connections=options["connections"],
        consumers=options["consumers"],
        rate_per_s=options["rate"],
        seconds=options["seconds"],
        body_bytes=options["body"],
        repeat=options["repeat"],
        stall_s=options["stall_s"],
    )
    if url is None:
        return session.run(lambda: busy.measure_ours(order, out), out)
    target = session.target_at(url, pids)
    return session.run(lambda: [busy.measure(target, session.name_of(url), order, out)], out)


COMMANDS = (
    addresses_command,
    attaches_command,
    cycles_command,
    fan_command,
    footprint_command,
    handshakes_command,
    busy_command,
)
