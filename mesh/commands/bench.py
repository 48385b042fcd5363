"""`amqpmesh bench`, with forward, latency, broker, links and connections; `bench_scale` has the other measurements."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any

import click

from mesh.commands import bench_scale
from mesh.commands.bench_options import BodySize, check, target_options, typed
from mesh.terminal.connection_options import Url
from mesh.terminal.options import output_options
from mesh.terminal.output import Output
from mesh.terminal.units import DURATION, RATE, SIZE

if TYPE_CHECKING:
    from mesh.bench.forward import ForwardLoad
    from mesh.client.url import AmqpUrl

MODES = ("unsettled", "presettled", "each")
BROKER_WORKS = ("pair", "pairs", "await", "backlog", "topic")
# The greatest --rate of `bench latency`; the compiled generator can send more, each message at its own time.
MOST_PER_S = 1_000_000


@click.group("bench")
def command() -> None:
    """Measure what messages, links and connections cost a router or broker.

    Without a URL, routers and brokers are started on loopback, measured and stopped. With a URL, any AMQP 1.0 server is
    measured with the same generator. CPU is the time of all living threads of the server's processes; with several
    runs, figures are medians.
    """


@command.command("forward", context_settings={"show_default": True})
@click.option(
    "-c", "--messages", type=click.IntRange(1), default=300_000, help="Number of messages, or of copies, in each run."
)
@click.option(
    "--mode", "modes", multiple=True, type=click.Choice(MODES), help="Settlement of the messages. Repeatable."
)
@click.option(
    "-s", "--body", "bodies", multiple=True, type=BodySize(), help="Size of a message body, such as 10k. Repeatable."
)
@click.option("--routers", multiple=True, type=click.IntRange(1, 3), help="Number of routers in line. Repeatable.")
@click.option(
    "-y",
    "--consumers",
    type=click.IntRange(1),
    help="Send a multicast to N consumers, in place of one producer to one consumer.",
)
@click.option("--window", type=click.IntRange(1), default=1000, help="Credit of each receiver.")
@click.option(
    "-n",
    "--repeat",
    type=click.IntRange(1),
    default=5,
    help="Number of measured runs of each row, after one run to warm up.",
)
@click.option("--durable", "is_durable", is_flag=True, help="Send durable messages, which brokers store.")
@click.option("--records", "has_records", is_flag=True, help="Let the routers record every delivery.")
@target_options
@output_options
def forward_command(out: Output, url: AmqpUrl | None, pids: tuple[int, ...], **options: Any) -> int:
    """Measure CPU per message and messages per second.

    Modes: `unsettled`, the receiver settles messages in ranges, as they come in; `each`, the receiver sends one
    disposition for each message; `presettled`. The receiver checks that every message came once, whole and in order;
    the sender checks that every message was settled and accepted. Exit code 1 if not; pre-settled messages may be
    lost, and are counted.

    With none of --mode, --body, --routers, --consumers and --url: the standard rows. With routers in line, CPU is per
    router; with several consumers, CPU is per copy, and the address at --url must give every consumer each message.
    SENDER and RECEIVER are the CPU of the generator itself; `generator alone` is the most that the generator can show.

    \b
    Examples:
      amqpmesh bench forward
      amqpmesh bench forward --routers 3 --tls --mode presettled --json
      amqpmesh bench forward --url amqp://guest:guest@localhost/%2Fqueue%2Fbench --pid 4711
    """
    from mesh.bench import forward, session

    check(url, pids, options, options["routers"])
    order = forward.ForwardBenchRequest(
        messages=options["messages"],
        window=options["window"],
        repeat=options["repeat"],
        is_tls=options["is_tls"],
        is_durable=options["is_durable"],
        stall_s=options["stall_s"],
        has_records=options["has_records"],
    )
    works = works_of(options, is_url=url is not None)
    if url is None:
        return session.run(lambda: forward.measure_ours(works, order, out), out)
    target = session.target_at(url, pids)
    return session.run(lambda: forward.measure(target, session.name_of(url), works, order, out), out)


def works_of(options: dict[str, Any], *, is_url: bool) -> list[ForwardLoad]:
    """Return the loads to measure: every combination of the values given, or the standard loads if neither a URL nor
    any of --mode, --body, --routers and --consumers is given.
    """
    from mesh.bench.forward import STANDARD, ForwardLoad

    asked = [options[name] for name in ("modes", "bodies", "routers", "consumers")]
    if not is_url and not any(asked):
        return list(STANDARD)
    return [
        ForwardLoad(mode, body, routers, options["consumers"] or 0)
        for routers in options["routers"] or (1,)
        for body in options["bodies"] or (100,)
        for mode in options["modes"] or MODES[:1]
    ]


@command.command("latency", context_settings={"show_default": True})
@click.option("-r", "--rate", type=RATE, default="10000/s", help="Rate of messages, such as 500/s.")
@click.option("-d", "--seconds", type=DURATION, default="10s", help="Duration of a run, such as 30s.")
@click.option("-s", "--body", type=BodySize(), default="100", help="Size of a message body.")
@click.option(
    "--routers", multiple=True, type=click.IntRange(1, 3), default=(1,), help="Number of routers in line. Repeatable."
)
@click.option(
    "--streams", type=click.IntRange(0), default=0, help="Number of large messages that are sent at the same time."
)
@click.option("--stream-bytes", type=BodySize(), default="1g", help="Size of each large message.")
@click.option(
    "--stream-rate",
    type=SIZE,
    help="Rate of all large messages together in bytes a second, such as 200m. [default: no limit]",
    metavar="SIZE",
)
@click.option(
    "-n", "--repeat", type=click.IntRange(1), default=1, help="Number of runs of each row; figures are medians."
)
@target_options
@output_options
def latency_command(out: Output, url: AmqpUrl | None, pids: tuple[int, ...], **options: Any) -> int:
    """Measure how long messages are under way, sent at an even rate.

    Sender and receiver are one process. The time of a message begins when the message is due, so the wait for credit
    counts. Without --url, the first row is the same pair with a relay of bytes in between: the floor of this machine.

    --streams N adds a row: N large messages at once, over the same two connections, on other addresses, and the
    latency of the small messages meanwhile. STREAMS TOOK is the time of all large messages, GROWN BY the growth in
    memory of the worst router. Without --stream-rate, large messages take all processors of a small machine, and small
    messages wait for a processor; with --stream-rate, small messages wait for the routers alone. On the last hop, a
    client's link carries one message at a time: small messages behind a large one on the same link are not measured.

    With --url, stream 0 uses ADDRESS.stream0, stream 1 uses ADDRESS.stream1, and so on: all these addresses must exist
    at the server, and are checked first.

    \b
    Examples:
      amqpmesh bench latency
      amqpmesh bench latency --routers 3 --streams 10 --stream-bytes 1g
      amqpmesh bench latency --routers 3 --streams 1 --stream-rate 200m
    """
    from mesh.bench import latency, session

    check(url, pids, options, options["routers"] != (1,))
    check_latency(options, typed("stream_bytes", "stream_rate"))
    order = latency.LatencyBenchRequest(
        rate_per_s=options["rate"],
        seconds=options["seconds"],
        repeat=options["repeat"],
        body_bytes=options["body"],
        streams=options["streams"],
        stream_bytes=options["stream_bytes"],
        stream_rate=float(options["stream_rate"] or inf),
        is_tls=options["is_tls"],
        stall_s=options["stall_s"],
    )
    if url is None:
        return session.run(lambda: latency.measure_ours(options["routers"], order, out), out)
    target = session.target_at(url, pids)
    return session.run(lambda: latency.measure_theirs(target, session.name_of(url), order, out), out)


@command.command("broker", context_settings={"show_default": True})
@click.argument("url", type=Url(), required=False)
@click.option("--pid", "pids", multiple=True, type=click.IntRange(1), help="Process id of the broker. Repeatable.")
@click.option(
    "-w",
    "--work",
    "kinds",
    multiple=True,
    type=click.Choice(BROKER_WORKS),
    help="Work to measure. Repeatable. [default: all]",
)
@click.option("--topic", metavar="ADDRESS", help="Address at URL that gives every consumer each message.")
@click.option(
    "-c", "--messages", type=click.IntRange(1), default=300_000, help="Number of messages, or of copies, in each run."
)
@click.option("-s", "--body", type=BodySize(), default="1k", help="Size of a message body, such as 10k.")
@click.option("--in-flight", type=click.IntRange(1), default=250, help="Most unsettled messages of each producer.")
@click.option("--window", type=click.IntRange(1), default=1000, help="Credit of each receiver.")
@click.option(
    "-n",
    "--repeat",
    type=click.IntRange(1),
    default=5,
    help="Number of measured runs of each row, after one run to warm up.",
)
@click.option("--timeout", "stall_s", type=DURATION, default="10s", help="Give up when no message moves for this time.")
@output_options
def broker_command(
    out: Output, url: AmqpUrl | None, pids: tuple[int, ...], kinds: tuple[str, ...], topic: str | None, **options: Any
) -> int:
    """Measure the CPU time of a broker for each stored message, and the rate of accepted messages.

    `pair`: a producer and a consumer at once, durable and not. `pairs`: four of them, on four queues. `await`: the
    producer waits for each accept. `backlog`: fill a queue, then drain it; the producer sends what it has credit for.
    `topic`: to 1, 10 and 100 consumers, per copy, not durable, and to 100 durable subscriptions.

    Without URL, the command starts two brokers and a router, and measures one broker directly, then `pair` through the
    router, on a queue of this broker and on a queue shared by both; the stores are in a temporary folder (TMPDIR). With
    amqp://[user[:password]@]host[:port]/address, any AMQP 1.0 broker is measured: `pairs` uses ADDRESS.1 to ADDRESS.4,
    and all queues must be empty, and exist or be made on attach; `topic` uses --topic.

    ACCEPT is the time a producer waits for an outcome; IN FLIGHT is the average number of messages without an outcome.
    WRITTEN is the number of bytes that the broker's processes sent to the disk. Exit code 1 if a message was lost,
    doubled, reordered, damaged or not accepted.

    \b
    Examples:
      amqpmesh bench broker
      amqpmesh bench broker --work pair --work backlog --json
      amqpmesh bench broker amqp://guest:guest@localhost/%2Fqueue%2Fbench --pid 4711
    """
    from mesh.bench import broker, session

    wanted = kinds_of(kinds, url, pids, topic)
    order = broker.BrokerBenchRequest(
        options["messages"],
        options["body"],
        options["in_flight"],
        options["window"],
        options["repeat"],
        options["stall_s"],
    )
    if url is None:
        return session.run(lambda: broker.measure_ours(wanted, order, out), out)
    target = session.target_at(url, pids, topic)
    works = broker.works_of(wanted)
    return session.run(lambda: broker.measure(target, session.name_of(url), works, order, out), out)


def kinds_of(kinds: Sequence[str], url: AmqpUrl | None, pids: Sequence[int], topic: str | None) -> Sequence[str]:
    """Return the kinds of work to measure: ``kinds`` or, if none is given, all, but `topic` at a URL only with --topic.

    Raise UsageError for --pid or --topic without a URL, and for work `topic` at a URL without --topic.
    """
    if url is None and (pids or topic):
        raise click.UsageError("--pid and --topic need URL: they are for a broker that runs already")
    if url is not None and not topic:
        if "topic" in kinds:
            raise click.UsageError("--work topic needs --topic ADDRESS if a URL is given")
        return kinds or [kind for kind in BROKER_WORKS if kind != "topic"]
    return kinds or BROKER_WORKS


@command.command("links", context_settings={"show_default": True})
@click.option("-c", "--links", type=click.IntRange(2), default=100_000, help="Number of links.")
@click.option("--per-session", type=click.IntRange(1, 65536), default=64, help="Number of links in each session.")
@click.option(
    "--connections", type=click.IntRange(1), default=10, help="Number of connections to spread the links over."
)
@target_options
@output_options
def links_command(out: Output, url: AmqpUrl | None, pids: tuple[int, ...], **options: Any) -> int:
    """Measure CPU time and memory of idle links: attaching, keeping and detaching.

    Receivers on one address, then on an address each, then circuits: senders at one end of a line of three routers,
    receivers at the other, seen from the router between. With --url: receivers on that address.

    \b
    Examples:
      amqpmesh bench links
      amqpmesh bench links --links 10000 --connections 1 --json
    """
    from mesh.bench import idle_links, session

    check(url, pids, options, False)
    order = idle_links.LinksBenchRequest(
        options["links"], options["per_session"], options["connections"], options["is_tls"], options["stall_s"]
    )
    if url is None:
        return session.run(lambda: idle_links.measure_our_links(order, out), out)
    target = session.target_at(url, pids)
    name = session.name_of(url)
    return session.run(lambda: [idle_links.measure_links(target, name, order, out, is_shared=True)], out)


@command.command("connections", context_settings={"show_default": True})
@click.option("-c", "--connections", type=click.IntRange(1), default=10_000, help="Number of connections.")
@target_options
@output_options
def connections_command(out: Output, url: AmqpUrl | None, pids: tuple[int, ...], **options: Any) -> int:
    """Measure CPU time and memory of idle connections with one link each: opening and keeping.

    The limit of open files is raised as far as this user may. With --tls the connections themselves are encrypted.

    \b
    Examples:
      amqpmesh bench connections
      amqpmesh bench connections --connections 500 --url amqp://localhost/orders --pid 4711
    """
    from mesh.bench import idle_links, session

    check(url, pids, options, False)
    order = idle_links.ConnectionsBenchRequest(options["connections"], options["is_tls"], options["stall_s"])
    if url is None:
        return session.run(lambda: idle_links.measure_our_connections(order, out), out)
    target = session.target_at(url, pids)
    name = session.name_of(url)
    return session.run(lambda: [idle_links.measure_connections(target, name, order, out)], out)


def check_latency(options: dict[str, Any], of_streams: list[str]) -> None:
    if options["seconds"] <= 0:
        raise click.UsageError("--seconds must be more than 0")
    if options["rate"] > MOST_PER_S:
        asked = f"{options['rate']:,.0f}/s"
        raise click.UsageError(f"--rate {asked} is too high: expected at most {MOST_PER_S:,}/s")
    if options["rate"] * options["seconds"] < 1:
        raise click.UsageError("no message would be sent: --rate times --seconds must be at least 1")
    if options["stream_rate"] == 0:
        raise click.UsageError("--stream-rate must be more than 0; without the option the streams have no limit")
    if of_streams and not options["streams"]:
        raise click.UsageError(f"expected --streams N with {' and '.join(of_streams)}")


for each in bench_scale.COMMANDS:
    command.add_command(each)
