"""What `amqpmesh bench` makes of its measurements, and of options that are wrong."""

from __future__ import annotations

import json
import os
import resource
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from mesh.bench import forward, meter, open_files, rows, session
from mesh.bench.dial import listen
from mesh.bench.forward import EACH, PRESETTLED, STANDARD, UNSETTLED, ForwardBenchRun, ForwardLoad
from mesh.bench.handshake import PeerOpen
from mesh.bench.idle_connections import address_of, check_sessions, shares
from mesh.bench.latency import sentences
from mesh.bench.loopback_mesh import LoopbackPlan, topology_of
from mesh.bench.meter import Meter
from mesh.bench.processes import BenchProcess, BenchProcesses
from mesh.bench.rows import BenchRow
from mesh.bench.units import size_name
from mesh.commands.bench import works_of
from mesh.commands.bench_options import STAMP_BYTES
from mesh.commands.cli import cli
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed
from mesh.terminal.figures import percentiles, rounded
from mesh.terminal.output import Output
from mesh_tests.waiting import wait_until

GONE_S = 10.0
BUSY_S = 0.2


def run(*arguments: str, **options: object) -> Result:
    return CliRunner().invoke(cli, ["bench", *arguments], **options)  # type: ignore[arg-type]


def run_of(**changes: Any) -> ForwardBenchRun:
    return ForwardBenchRun(
        **{
            "cpu_us": 2.0,
            "messages_per_s": 100.0,
            "sender_us": 0.1,
            "receiver_us": 0.2,
            "lost": 0,
            "wrongs": {},
            **changes,
        }
    )


# Figures
@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=300))
def test_percentiles_are_samples_that_so_many_do_not_exceed(samples: list[float]) -> None:
    found = percentiles(samples)
    assert found["max_us"] == max(samples)
    for key, share in (("p50_us", 0.5), ("p95_us", 0.95), ("p99_us", 0.99)):
        assert found[key] in samples
        assert sum(sample <= found[key] for sample in samples) >= share * len(samples) - 1e-6
        assert sum(sample < found[key] for sample in samples) < share * len(samples) + 1e-6


def test_the_median_of_an_odd_number_is_the_50th_percentile() -> None:
    samples = [5.0, 1.0, 9.0, 7.0, 3.0]
    assert percentiles(samples)["p50_us"] == statistics.median(samples)
    assert percentiles([]) == {}


@pytest.mark.parametrize(
    ("value", "shown"), [(1.23456, 1.235), (123.456, 123.5), (123456.7, 123457), (0.000123456, 0.0001235)]
)
def test_figures_have_the_digits_that_mean_something(value: float, shown: float) -> None:
    assert rounded(value) == shown


@pytest.mark.parametrize(
    ("size", "name"), [(100, "100 B"), (1024, "1 KB"), (10240, "10 KB"), (1000, "1,000 B"), (2**30, "1 GiB")]
)
def test_sizes_are_named_as_people_say_them(size: int, name: str) -> None:
    assert size_name(size) == name


# Rows
def test_a_row_holds_the_median_and_the_spread_of_its_runs() -> None:
    runs = [run_of(cpu_us=cpu, messages_per_s=rate, lost=1) for cpu, rate in ((3.0, 10.0), (1.0, 30.0), (1.5, 20.0))]
    told = forward.row_of("work", PRESETTLED, runs).to_map()
    assert (told["work"], told["mode"]) == ("work", "presettled")
    assert (told["cpu_us_per_message"], told["cpu_us_spread"]) == (1.5, [1.0, 3.0])
    assert (told["messages_per_s"], told["messages_per_s_spread"]) == (20.0, [10.0, 30.0])
    assert told["lost"] == 3


def test_what_does_not_apply_is_absent() -> None:
    told = forward.row_of("work", UNSETTLED, [run_of(cpu_us=None)]).to_map()
    assert not {"cpu_us_per_message", "cpu_us_spread", "messages_per_s_spread", "p50_us", "bytes_each"} & set(told)
    assert "wrongs" not in told


def test_loss_is_wrong_unless_it_was_pre_settled_and_all_else_always_is() -> None:
    runs = [run_of(lost=2), run_of(wrongs={"doubled": 1, "released to the sender": 3})]
    assert list(forward.sentences("w", PRESETTLED, runs)) == [
        "w, presettled: 1 messages doubled",
        "w, presettled: 3 messages released to the sender",
    ]
    assert next(forward.sentences("w", EACH, runs)) == "w, each: 2 messages did not arrive"


def test_a_run_is_timed_from_the_first_message_to_the_last_settlement() -> None:
    sent = {"started_at": 10.0, "ended_at": 12.0, "cpu_s": 0.1, "outcomes": {"accepted": 9, "released": 1}}
    sent |= {"unsettled": 0, "settled_twice": 0}
    received = {"ended_at": 11.0, "received": 9, "lost": 1, "doubled": 0, "reordered": 2, "damaged": 0, "cpu_s": 0.2}
    found = forward.run_of(10, 1.0, sent, received)
    assert found.messages_per_s == 4.5
    assert found.wrongs == {"reordered": 2, "released to the sender": 1}


def test_latency_tells_what_went_wrong() -> None:
    report = {"lost": 1, "unsettled": 0, "doubled": 0, "reordered": 0, "damaged": 2}
    assert list(sentences("w", [report, report])) == ["w: 2 messages lost", "w: 4 messages damaged"]


ROWS = [
    BenchRow("1 router", "unsettled", {"cpu_us_per_message": 1.234, "messages_per_s": 654321.5, "lost": 0}),
    BenchRow("2 routers", "each", {"cpu_us_per_message": None, "cpu_us_spread": [1.0, 2.5], "bytes_each": 33000}),
]


def test_json_is_a_list_with_an_object_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    rows.show(ROWS, Output("bench.forward", is_json=True))
    listed = json.loads(capsys.readouterr().out)
    assert listed[0] == {
        "schema": "amqpmesh.bench.forward/1",
        "work": "1 router",
        "mode": "unsettled",
        "cpu_us_per_message": 1.234,
        "messages_per_s": 654322,
        "lost": 0,
    }
    assert listed[1]["bytes_each"] == 33000


def test_the_table_has_a_column_for_each_figure_that_some_row_has(capsys: pytest.CaptureFixture[str]) -> None:
    rows.show(ROWS, Output("bench.forward"))
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["WORK", "MODE", "CPU/MSG", "(SPREAD)", "MSG/S", "BYTES", "EACH", "LOST"]
    assert first.split() == ["1", "router", "unsettled", "1.23", "us", "-", "654,322", "-", "0"]
    assert second.split() == ["2", "routers", "each", "-", "1.00", "to", "2.50", "-", "33,000", "-"]


def test_rows_that_were_measured_are_shown_though_a_later_one_fails(capsys: pytest.CaptureFixture[str]) -> None:
    def measure() -> Any:
        yield ROWS[0]
        raise CommandFailed("the router died")

    with pytest.raises(CommandFailed):
        session.run(measure, Output("bench.forward"))
    assert "654,322" in capsys.readouterr().out


def test_a_wrong_row_ends_in_exit_code_1_and_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = BenchRow("w", "each", {"lost": 1}, ("w, each: 1 messages did not arrive",))
    assert session.run(lambda: [wrong], Output("bench.forward", is_json=True)) == ExitCode.FAILED
    shown = capsys.readouterr()
    assert json.loads(shown.out)[0]["wrongs"] == ["w, each: 1 messages did not arrive"]
    assert "wrong: w, each" in shown.err


# Options
def options(**given_options: Any) -> dict[str, Any]:
    return {"modes": (), "bodies": (), "routers": (), "consumers": None, **given_options}


def test_without_options_the_standard_rows_are_measured() -> None:
    assert works_of(options(), is_url=False) == list(STANDARD)
    assert works_of(options(), is_url=True) == [ForwardLoad()]


def test_options_are_combined() -> None:
    found = works_of(options(modes=("unsettled", "each"), bodies=(100, 1024), routers=(3,), consumers=10), is_url=False)
    assert found == [ForwardLoad(mode, body, 3, 10) for body in (100, 1024) for mode in ("unsettled", "each")]


def test_the_smallest_body_is_what_the_generator_needs() -> None:
    from mesh.bench.producer import MIN_BODY_BYTES

    assert STAMP_BYTES == MIN_BODY_BYTES


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["forward", "--url", "http://h/a"], "unknown scheme 'http'"),
        (["forward", "--url", "amqp://h"], "has no address"),
        (["forward", "--url", "orders"], "expected a URL with host and address"),
        (["forward", "--url", "amqps://h/a"], "plain text"),
        (["latency", "--url", "amqp://h/a", "--routers", "2"], "are not allowed with --url"),
        (["links", "--url", "amqp://h/a", "--tls"], "are not allowed with --url"),
        (["forward", "--url", "amqp://h/a", "--records"], "are not allowed with --url"),
        (["connections", "--pid", "1"], "--pid is only for a server at --url"),
        (["connections", "--url", "amqp://h/a", "--pid", "4194304"], "no such process"),
        (["forward", "--body", "15"], "at least 16 bytes"),
        (["forward", "--mode", "fast"], "fast"),
        (["forward", "--routers", "4"], "4"),
        (["latency", "--rate", "much"], "expected a number, or a number and a unit"),
        (["latency", "-d", "0s"], "must be more than 0"),
        (["latency", "--rate", "200m"], "expected at most 1,000,000/s"),
        (["latency", "--rate", "1/s", "-d", "100ms"], "no message would be sent"),
        (["latency", "--streams", "1", "--stream-rate", "0"], "--stream-rate must be more than 0"),
        (["latency", "--stream-rate", "1m"], "expected --streams N with --stream-rate"),
        (["latency", "--stream-bytes", "1m", "--stream-rate", "1m"], "expected --streams N with --stream-bytes and"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_starts(arguments: list[str], words: str) -> None:
    result = run(*arguments)
    assert result.exit_code == ExitCode.USAGE
    assert words in result.stderr
    assert json.loads(run(*arguments, "--json").stdout)["schema"] == "amqpmesh.error/1"


def test_a_password_is_never_part_of_a_row() -> None:
    from mesh.client.url import parse_url

    assert session.name_of(parse_url("amqp://u:secret@h:1/a")) == "a at h"


def test_the_password_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from mesh.client.url import parse_url

    monkeypatch.setenv("AMQPMESH_PASSWORD", "hush")
    target = session.target_at(parse_url("amqp://u@h/a"), [])
    assert (target.sending_place.user, target.sending_place.password) == ("u", "hush")
    assert target.meter is None


# The line of routers
def test_a_line_connects_each_router_to_the_one_before() -> None:
    model = topology_of(LoopbackPlan(3, is_tls=True, max_links=5))
    assert [router["connect"] for router in model["routers"].values()] == [[], ["r1"], ["r2"]]
    assert model["node_tls"]
    assert model["routers"]["r1"]["listeners"][0]["max_links"] == 5
    ports = [router["port"] for router in model["routers"].values()]
    ports += [router["listeners"][0]["port"] for router in model["routers"].values()]
    assert len(set(ports)) == 6


# Meter
def busy_child() -> subprocess.Popen[bytes]:
    """A shell whose child is busy."""
    script = "import time\nwhile True: pass"
    return subprocess.Popen(["sh", "-c", f"{sys.executable} -c '{script}' & wait"], start_new_session=True)


def test_cpu_and_memory_of_children_count() -> None:
    parent = busy_child()
    try:
        gauge = Meter([parent.pid])
        wait_until(lambda: gauge.cpu_s()[0] > BUSY_S, GONE_S, "a busy grandchild")
        assert gauge.resident_bytes()[0] > meter.resident_bytes(parent.pid) > 0
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()


def test_a_process_that_is_gone_uses_nothing() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert (Meter([ended.pid]).cpu_s(), Meter([ended.pid]).resident_bytes()) == ([0.0], [0])
    with pytest.raises(click.UsageError, match="no such process"):
        meter.check_pid(ended.pid)


def mapping_child() -> subprocess.Popen[str]:
    """A process that, told to, has 64 MiB for a moment: of its own, so that nothing else comes or goes in it."""
    script = """
import mmap
print(input(), flush=True)
input()
held, piece = mmap.mmap(-1, 64 << 20), bytes(1 << 20)
for _ in range(64):
    held.write(piece)
held.close()
print("gone", flush=True)
input()
"""
    return subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_peak_outlasts_the_memory_that_made_it() -> None:
    with mapping_child() as child:
        assert child.stdin
        assert child.stdout
        print("ready", file=child.stdin, flush=True)
        assert child.stdout.readline() == "ready\n"
        gauge = Meter([child.pid])
        gauge.forget_peaks()
        before = gauge.peak_bytes()[0]
        print("map", file=child.stdin, flush=True)
        assert child.stdout.readline() == "gone\n"
        assert gauge.resident_bytes()[0] - before < 32 << 20 < gauge.peak_bytes()[0] - before
        child.communicate("end\n")


# Many
@given(st.integers(1, 1000), st.integers(1, 40))
def test_links_are_spread_evenly_and_none_is_forgotten(count: int, parts: int) -> None:
    found = shares(count, parts)
    assert [number for share in found for number in share] == list(range(count))
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_an_address_may_be_one_for_all_or_one_for_each() -> None:
    assert [address_of("a", 5), address_of("a.%d", 5)] == ["a", "a.5"]


def test_more_sessions_than_the_peer_allows_is_said_with_what_to_do() -> None:
    with pytest.raises(CommandFailed, match="a connection needs 5 sessions, and the peer allows 4") as failed:
        check_sessions(5, PeerOpen(channel_max=3))
    assert failed.value.fix is not None


def test_more_files_than_this_user_may_open_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("not allowed")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 1000))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    open_files.make_room(100)
    with pytest.raises(CommandFailed, match="needs 10,200 open files, and the limit of this user is 1,000"):
        open_files.make_room(10_200)


# Processes
PLACE = {"host": "127.0.0.1", "port": 1}
PLAN = {
    "run": 1,
    "count": 1,
    "body_bytes": 16,
    "mode": UNSETTLED,
    "is_durable": False,
    "stall_s": 1.0,
    "addresses": ["a"],
}


def test_what_a_side_failed_of_is_what_the_command_fails_of() -> None:
    with BenchProcesses() as sides, pytest.raises(CommandFailed) as failed:
        sides.start("produce", {**PLAN, "place": PLACE}).step()
    assert failed.value.exit_code == ExitCode.UNREACHABLE
    assert failed.value.message == "127.0.0.1:1: cannot connect: connection refused"


@pytest.fixture
def waiting_side() -> Iterator[BenchProcess]:
    """One that has been told to wait for a generator, and has said so."""
    with listen() as listening, BenchProcesses() as sides:
        side = sides.start("sink", {**PLAN, "listen_fd": listening.fileno(), "window": 1}, [listening.fileno()])
        side.step()
        yield side


def test_a_side_that_died_is_said_so(waiting_side: BenchProcess) -> None:
    os.kill(waiting_side.pid, signal.SIGKILL)
    with pytest.raises(CommandFailed, match="of role sink was ended by SIGKILL"):
        waiting_side.step()


def test_a_killed_side_is_gone(waiting_side: BenchProcess) -> None:
    waiting_side.kill()
    assert not Path(f"/proc/{waiting_side.pid}").exists()


LEASHED = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import sys, time; from mesh.bench.orphan_guard import leash; "
                          "leash(int(sys.argv[1])); print('leashed', flush=True); time.sleep(60)",
                          str(__import__("os").getpid())], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""


def test_a_leashed_process_ends_with_its_parent_however_that_ends() -> None:
    parent = subprocess.Popen([sys.executable, "-c", LEASHED], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    with parent:
        child = int(parent.stdout.readline())
        parent.kill()
    wait_until(lambda: not is_alive(child), GONE_S, "the child to be gone")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_process_that_came_too_late_for_its_parent_ends_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from mesh.bench.orphan_guard import leash; leash(1 << 22); print('alive')"],
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"")
