"""The command line as a whole: what it imports, how it fails, what every command has in common."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from addressing.topology.loader import load_topology
from mesh.commands.cli import ALIASES, COMMANDS, cli
from mesh.commands.reference import reference
from mesh.deploy.pid_file import PidFile
from mesh.deploy.workdir import SUPERVISOR, WorkDir
from mesh.operations import report_requirements as lacking
from mesh.operations.conditions import CONDITIONS
from mesh.operations.doctor import certificate_finding
from mesh.operations.event_catalog import described_events
from mesh.operations.status import ADDRESSES, CONNECTIONS, NODE_COLUMNS, QUEUES
from mesh.terminal.exit_codes import MEANINGS, ExitCode
from mesh_tests.ports import free_port
from mesh_tests.programs import CHECKOUT

HEAVY = ("pydantic", "rich", "proton", "cproton", "cryptography", "networkx", "ruamel", "scramp", "asyncio", "ssl")
HELP_MODULES = 160
"""Python itself and click make 125 of them."""
RIGHT = "mesh: m\nrouters: {r1: {listeners: [5672]}}\naddresses: {a: anycast}\n"


def run(*arguments: str, **options: object) -> Result:
    return CliRunner().invoke(cli, arguments, **options)  # type: ignore[arg-type]


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    ctx = click.Context(command)
    for name in command.list_commands(ctx):
        child = command.get_command(ctx, name)
        assert child is not None
        yield from leaves(child, (*path, name))


ALL = list(leaves(cli))


@pytest.fixture
def topology(tmp_path: Path) -> str:
    (tmp_path / "amqpmesh.yml").write_text(RIGHT)
    return str(tmp_path / "amqpmesh.yml")


def test_help_imports_nothing_heavy_and_few_modules() -> None:
    script = (
        "import sys\nfrom mesh.commands.cli import cli\n"
        "try: cli.main(['--help'])\nexcept SystemExit as end: assert end.code == 0\n"
        f"found = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "print(found, len(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    found, count = done.stderr.rsplit(" ", 1)
    assert found == "[]"
    assert int(count) < HELP_MODULES
    assert all(name in done.stdout for name in COMMANDS)


def test_help_names_every_exit_code() -> None:
    shown = run("--help").output
    assert all(f"{code:>3}  {meaning}" in shown for code, meaning in MEANINGS.items())
    assert set(MEANINGS) == set(ExitCode)


def test_python_m_mesh_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "mesh", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("amqpmesh ")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_of_itself_what_the_list_of_commands_says(name: str) -> None:
    command = import_module(f"mesh.commands.{COMMANDS[name][0]}").command
    assert command.name == name
    assert command.help


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) for path, _ in ALL])
def test_every_command_has_json_and_no_color_and_explains_its_options(
    path: tuple[str, ...], command: click.Command
) -> None:
    options = {name for param in command.params for name in param.opts}
    assert {"--json", "--no-color"} <= options
    assert all(param.help for param in command.params if isinstance(param, click.Option) and not param.hidden)
    assert run(*path, "--help").exit_code == ExitCode.OK
    assert run(*path, "--no-such-option").exit_code == ExitCode.USAGE


def test_help_of_no_command_imports_anything_heavy() -> None:
    script = (
        "import sys\nfrom mesh.commands.cli import cli\n"
        f"for path in {[path for path, _ in ALL]!r}:\n"
        "    try: cli.main([*path, '--help'])\n"
        "    except SystemExit: pass\n"
        f"    found = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "    if found: sys.exit(f'{path} imports {found}')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_an_alias_is_the_command() -> None:
    ctx = click.Context(cli)
    assert all(cli.get_command(ctx, alias) is cli.get_command(ctx, name) for alias, name in ALIASES.items())


def test_help_word_works_like_the_option() -> None:
    assert run("help").output == run("--help").output
    assert run("help", "send").output == run("send", "--help").output


def test_a_misspelt_command_gets_a_suggestion() -> None:
    result = run("recieve")
    assert result.exit_code == ExitCode.USAGE
    assert "Did you mean 'receive'?" in result.stderr
    assert result.stdout == ""


def test_wrong_usage_is_json_too() -> None:
    result = run("send", "-m", "x", "--json")
    assert result.exit_code == ExitCode.USAGE
    assert json.loads(result.stdout)["schema"] == "amqpmesh.error/1"


def test_a_wrong_topology_exits_65_and_shows_all_errors_at_once(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text("mesh: m\nrouters: {r1: {conect: [r1]}, r2: {connect: [r9]}}\n")
    result = run("check", str(wrong))
    assert result.exit_code == ExitCode.TOPOLOGY_INVALID
    assert "wrong.yml:2:16  AM101" in result.stderr
    assert "AM103" in result.stderr
    assert result.stdout == ""
    told = json.loads(run("check", str(wrong), "--json").stdout)
    assert [error["code"] for error in told["error"]["errors"]] == ["AM101", "AM201", "AM103"]


@pytest.mark.parametrize("command", ["check", "up", "status", "down", "doctor", "send"])
def test_a_topology_that_is_not_there_exits_65(command: str, tmp_path: Path) -> None:
    more = ["x", "-m", "y"] if command == "send" else []
    result = run(command, *more, "-t", str(tmp_path / "none.yml"))
    assert result.exit_code == ExitCode.TOPOLOGY_INVALID
    assert "AM001" in result.stderr


def test_check_draws_on_stdout(topology: str) -> None:
    result = run("check", topology)
    assert result.exit_code == ExitCode.OK
    assert "r1" in result.stdout
    assert run("check", "-q", topology).stdout == ""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("", "link logs: summary, in linklogs of the work directory, for 7 d, up to 10.7 GB"),
        ("link_logs: off", "link logs: none"),
        ("link_logs: {keep: off}", "link logs: summary, not kept in files"),
        (
            "link_logs: {level: full, folder: /logs, keep_s: 3600, redact: {key: /the/key, columns: user}}",
            "link logs: full, in /logs, for 60 min, up to 10.7 GB; hashed with /the/key: user",
        ),
    ],
)
def test_check_says_what_nodes_will_record(tmp_path: Path, settings: str, said: str) -> None:
    path = tmp_path / "m.yml"
    path.write_text(f"mesh: m\nrouters: {{r1: }}\n{settings}\n")
    assert said in run("check", str(path)).stdout.splitlines()
    told = json.loads(run("check", "--json", str(path)).stdout)["topology"]["link_logs"]
    assert (told is None) == (said == "link logs: none")


def test_the_topology_may_be_named_by_the_environment_or_its_folder(topology: str) -> None:
    for arguments in (["-t", str(Path(topology).parent)], []):
        result = run("check", "--json", *arguments, env={"AMQPMESH_TOPOLOGY": topology})
        assert json.loads(result.stdout)["topology"]["mesh"] == "m"


def test_every_option_can_be_set_by_the_environment(topology: str) -> None:
    assert run("check", topology, env={"AMQPMESH_CHECK_QUIET": "1"}).stdout == ""
    assert json.loads(run("check", topology, env={"AMQPMESH_CHECK_JSON": "1"}).stdout)["ok"]
    for path, command in ALL:
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                long = next(name for name in option.opts if name.startswith("--"))[2:]
                name = "_".join(("AMQPMESH", *path, long)).upper().replace("-", "_")
                assert option.envvar == ("AMQPMESH_TOPOLOGY" if long == "topology" else name)


def test_the_reference_is_current() -> None:
    written = Path(__file__).resolve().parents[4] / "docs" / "reference" / "cli.md"
    assert written.read_text() == reference(), "make it anew: python -m mesh.commands.reference > docs/reference/cli.md"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["news", "--unsubscribe"], "--unsubscribe needs --durable NAME, the subscription to delete"),
        (["news", "--durable", ""], "--durable needs a name for the subscription"),
        (
            ["//localhost/", "--durable", "mine"],
            "--durable needs an address: a dynamic address ends with its receiver",
        ),
        (["news", "--durable", "mine", "--browse"], "--browse is for queues, and --durable is for topics"),
    ],
)
def test_a_durable_subscription_has_a_name_and_is_to_a_topic(arguments: list[str], what: str) -> None:
    result = run("receive", *arguments)
    assert result.exit_code == ExitCode.USAGE
    assert what in result.stderr


def test_no_block_of_the_reference_is_empty() -> None:
    blocks = re.findall(r"^```(?:sh|text)\n(.*?)^```$", reference(), re.DOTALL | re.MULTILINE)
    assert len(blocks) > len(ALL) / 2
    assert all(blocks)


def test_schema_is_the_json_schema_of_topologies() -> None:
    plain = json.loads(run("schema").stdout)
    wrapped = json.loads(run("schema", "--json").stdout)
    assert wrapped == {"schema": "amqpmesh.schema/1", "json_schema": plain}
    assert "routers" in plain["properties"]


def test_explain_knows_every_code_and_says_so_when_not() -> None:
    assert run("explain", "am103").stdout.startswith("AM103: unknown router")
    codes = json.loads(run("explain", "--json").stdout)["codes"]
    assert {"code": "AM103", "title": "unknown router"} in codes
    unknown = run("explain", "AM999")
    assert unknown.exit_code == ExitCode.FAILED
    assert "error: unknown error code AM999" in unknown.stderr


def test_explain_knows_each_log_event_and_its_fields() -> None:
    told = run("explain", "node_died").stdout
    assert told.startswith("node_died (error)\nSupervisor (`amqpmesh up`)\n\nThe process of node `died`")
    assert told.endswith("fields: died, exit_code, reason, restart_in_s\n")
    for event in described_events():
        told = json.loads(run("explain", event.name, "--json").stdout)["events"]
        assert list(event.fields) in [each["fields"] for each in told]
    unknown = run("explain", "node_dyed")
    assert unknown.exit_code == ExitCode.FAILED
    assert "error: node_dyed is not an error code such as AM103, a log event" in unknown.stderr
    assert "Did you mean node_died?" in unknown.stderr


def test_explain_knows_each_condition_that_a_node_sends() -> None:
    assert "The topology declares no such address" in run("explain", "amqp:not-found").stdout
    sent = set()
    for package in ("wire", "router", "broker", "addressing"):
        for file in (CHECKOUT / package).rglob("*.py*"):
            if file.suffix in (".py", ".pyx"):
                sent |= set(
                    re.findall(r'"(amqp:(?:[a-z]+:)?[a-z-]+|amqpmesh:(?:path-lost|no-taker))"', file.read_text())
                )
    types = {name for name in sent if name.endswith((":list", ":map"))}
    assert len(sent - types) > 15
    assert sent - types <= set(CONDITIONS)
    assert "error: unknown condition amqp:nothing" in run("explain", "amqp:nothing").stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    assert "_AMQPMESH_COMPLETE" in run("completion", shell).stdout
    assert json.loads(run("completion", shell, "--json").stdout)["shell"] == shell


def test_a_user_is_added_with_a_hash_and_never_the_password(topology: str) -> None:
    secret = {"AMQPMESH_PASSWORD": "correct horse"}
    added = run("user", "add", "alice", "-t", topology, "--send", "a", "--json", env=secret)
    assert json.loads(added.stdout) == {
        "schema": "amqpmesh.user.add/1",
        "user": "alice",
        "file": topology,
        "added": True,
    }
    text = Path(topology).read_text()
    assert "SCRAM-SHA-256$" in text
    assert "correct horse" not in text
    assert not json.loads(run("user", "add", "alice", "-t", topology, "--json", env=secret).stdout)["added"]


def test_a_password_is_not_invented(topology: str) -> None:
    result = run("user", "add", "alice", "-t", topology, env={"AMQPMESH_PASSWORD": None})
    assert result.exit_code == ExitCode.USAGE
    assert "no password" in result.stderr


def test_a_node_must_be_one_of_the_topology(topology: str) -> None:
    result = run("node", "r2", "-t", topology)
    assert result.exit_code == ExitCode.USAGE
    assert "unknown node 'r2' in mesh m: expected one of r1" in result.stderr


def test_doctor_reports_every_check_and_fails_only_for_what_a_mesh_needs(topology: str) -> None:
    result = run("doctor", "-t", topology, "--json")
    findings = {found["check"]: found["state"] for found in json.loads(result.stdout)["findings"]}
    assert {"python", "proton", "open files", "clock", "disk", "port 5672", "docker"} <= set(findings)
    assert findings["python"] == findings["proton"] == "ok"


def test_doctor_examines_the_machine_though_the_topology_nearby_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "amqpmesh.yml").write_text("mesh: [")
    monkeypatch.chdir(tmp_path)
    findings = {found["check"]: found for found in json.loads(run("doctor", "--json").stdout)["findings"]}
    assert findings["python"]["state"] == "ok"
    assert (findings["topology"]["state"], findings["topology"]["detail"]) == ("failed", "the topology has 1 error")


def test_doctor_names_a_damaged_certificate(tmp_path: Path) -> None:
    damaged = tmp_path / "r1.pem"
    damaged.write_text("-----BEGIN CERTIFICATE-----\nwhat?\n-----END CERTIFICATE-----\n")
    finding = certificate_finding(damaged)
    assert finding is not None
    assert (finding.state, finding.detail) == ("failed", f"{damaged} is damaged: expected a certificate in PEM")


def test_doctor_says_what_reports_of_link_logs_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(lacking, "SPARK", ("pyspark_that_is_not_there",))
    findings = {found["check"]: found for found in json.loads(run("doctor", "--json").stdout)["findings"]}
    assert findings["java"]["detail"] == f"Java 11 at {program}: reports of link logs need 17 or newer"
    assert "set JAVA_HOME to where Java 17 is" in findings["java"]["fix"]
    assert findings["spark"]["state"] == "absent"
    assert findings["spark"]["fix"].endswith("pip install '.[spark]'")
    program.unlink()
    assert lacking.java().state == "absent"


def test_what_is_not_running_can_be_stopped(topology: str) -> None:
    result = run("down", "-t", topology, "--json")
    assert json.loads(result.stdout) == {"schema": "amqpmesh.down/1", "stopped": []}
    assert "nothing runs here" in result.stderr


def test_status_says_when_up_crashed_and_left_its_nodes(topology: str) -> None:
    workdir = WorkDir(load_topology(topology).work_dir)
    workdir.make()
    with PidFile(workdir.pid_file("r1")) as node:
        assert node.acquire()
        # As under systemd: nobody ran `up`.
        assert not json.loads(run("status", "-t", topology, "--json").stdout)["supervisor_lost"]
        workdir.pid_file(SUPERVISOR).write_text('{"pid": 1}')
        result = run("status", "-t", topology, "--json")
    assert json.loads(result.stdout)["supervisor_lost"]
    assert result.exit_code == ExitCode.FAILED
    assert f"no supervisor runs: nodes that die are not restarted; run `amqpmesh up -t {topology}`" in result.stderr


def test_the_status_of_a_mesh_that_does_not_run_is_69(topology: str) -> None:
    result = run("status", "-t", topology)
    assert result.exit_code == ExitCode.UNREACHABLE
    assert "no node of mesh m runs here" in result.stderr
    assert f"fix: start it with `amqpmesh up -t {topology}`." in result.stderr


@pytest.mark.parametrize("command", [("send", "orders", "-m", "x"), ("receive", "orders")])
def test_without_a_running_mesh_a_client_says_how_to_start_it(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "amqpmesh.yml").write_text(f"mesh: m\nrouters: {{r1: {{listeners: [{free_port()}]}}}}\n")
    monkeypatch.chdir(tmp_path)
    result = run(*command)
    assert result.exit_code == ExitCode.UNREACHABLE
    assert "cannot connect" in result.stderr
    assert result.stderr.endswith("fix: m does not run here; start it with `amqpmesh up --detach`.\n")


def test_every_column_of_status_is_explained_in_its_help() -> None:
    shown = run("status", "--help").stdout
    names = {name for table in (CONNECTIONS, ADDRESSES, QUEUES) for name in table.columns}
    missing = {name for name in names | set(NODE_COLUMNS) if name not in re.findall(r"[A-Z]+", shown)}
    # What they are is in their names.
    assert missing == {"NODE"}


def test_what_else_runs_in_the_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "amqpmesh.yml").write_text(RIGHT.replace("mesh: m", "mesh: renamed"))
    monkeypatch.chdir(tmp_path)
    workdir = WorkDir(tmp_path / ".amqpmesh" / "before")
    workdir.make()
    with PidFile(workdir.pid_file(SUPERVISOR)) as supervisor:
        assert supervisor.acquire()
        shown, stopped = run("status"), run("down")
    assert shown.exit_code == ExitCode.UNREACHABLE
    assert "before runs here: if that is the former name of this mesh, `amqpmesh down` stops it" in shown.stderr
    # Who holds this pid file was started from no topology file.
    assert stopped.stderr == (
        "no node of renamed runs here, but before does: `amqpmesh down -t its topology file` stops it\n"
    )


def test_a_message_given_twice_is_refused(tmp_path: Path) -> None:
    for options in (["-m", "a", "-m", "b"], ["--message", "a", "-m", "b"]):
        result = run("send", "orders", *options)
        assert result.exit_code == ExitCode.USAGE
        assert "-m is given 2 times: expected once" in result.stderr
    (tmp_path / "file").write_text("x")
    twice = run("send", "orders", "-f", str(tmp_path / "file"), "-f", str(tmp_path / "file"))
    assert "-f is given 2 times" in twice.stderr


def test_a_message_may_come_from_the_environment() -> None:
    result = run("send", "//localhost:1/orders", env={"AMQPMESH_SEND_MESSAGE": "two words"})
    assert result.exit_code == ExitCode.UNREACHABLE


def test_errors_name_an_option_as_its_help_does() -> None:
    result = run("send", "orders", "-m", "x", "-c", "none")
    assert "Invalid value for '-c' / '--count': 'none'" in result.stderr


def test_more_than_a_message_can_hold_is_refused() -> None:
    result = run("send", "orders", "-s", "5g")
    assert result.exit_code == ExitCode.USAGE
    assert "-s: expected a message body of less than 4 GiB, got 5368709120 bytes" in result.stderr


def test_a_wrong_topology_in_the_folder_ends_send_with_its_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "amqpmesh.yml").write_text("mesh: [")
    monkeypatch.chdir(tmp_path)
    for command in (["send", "orders", "-m", "x"], ["receive", "orders", "-c", "1"]):
        result = run(*command)
        assert result.exit_code == ExitCode.TOPOLOGY_INVALID
        assert "AM004" in result.stderr


def test_certificates_that_were_not_made_yet_are_said_to_be_made_by_make_or_up(topology: str) -> None:
    result = run("certs", "export", "ca", "-t", topology)
    assert result.exit_code == ExitCode.FAILED
    assert result.stderr == (
        "error: this mesh has no certificates here yet\n"
        "fix: `amqpmesh certs make`, or the first `up`, makes the authority, and a certificate for each node.\n"
    )


def test_the_authority_has_no_key_store_to_be_exported(topology: str) -> None:
    run("certs", "make", "-t", topology)
    result = run("certs", "export", "ca", "--format", "p12", "-t", topology)
    assert (result.exit_code, result.stdout) == (ExitCode.FAILED, "")
    assert result.stderr == "error: the authority is exported without its key, as PEM: expected --format pem, got p12\n"


def test_certificates_are_made_once_for_all_that_need_one(topology: str) -> None:
    Path(topology).write_text(RIGHT + "brokers: {b1: {data: ./data}}\n")
    first, second = (json.loads(run("certs", "make", "--json", "-t", topology).stdout)["certificates"] for _ in "12")
    made = [(one["role"], one["name"]) for one in first]
    assert made == [("router", "r1"), ("broker", "b1"), ("operator", "operator")]
    assert all(Path(one["key"]).exists() and Path(one["ca"]).exists() for one in first)
    assert [one["fingerprint_sha256"] for one in second] == [one["fingerprint_sha256"] for one in first]


def test_it_is_said_how_many_certificates_were_made_and_the_authority_is_among_them(topology: str) -> None:
    first, second = run("certs", "make", "-t", topology), run("certs", "make", "-t", topology)
    assert "ca.pem" in first.stdout.replace("\n", "")
    assert (first.stderr.strip(), second.stderr.strip()) == ("made 3, 0 were there", "made 0, 3 were there")


def test_no_certificates_are_made_for_nodes_that_talk_in_plain_text(topology: str) -> None:
    Path(topology).write_text(RIGHT + "node_tls: false\n")
    result = run("certs", "make", "-t", topology)
    assert result.exit_code == ExitCode.OK
    assert "need no certificates: node_tls is false" in result.stderr
    assert not list(Path(topology).parent.rglob("*.pem"))


def test_a_file_of_binary_is_shown_without_what_would_steer_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "amqpmesh.yml").write_bytes(b"mesh: m\x1b[31m\x07" + b"\x00" * 5000 + b"\n")
    result = run("check", str(tmp_path / "amqpmesh.yml"))
    assert result.exit_code == ExitCode.TOPOLOGY_INVALID
    assert "mesh: m" in result.stderr
    assert all(character.isprintable() or character == "\n" for character in result.stderr)
    assert max(map(len, result.stderr.splitlines())) < 250


def test_a_simulation_that_is_over_before_its_first_fault_is_refused():
    result = run("simulate", "--routers", "3", "--duration", "5s")
    assert result.exit_code == ExitCode.USAGE
    assert "is over before the first fault, in 8s: nothing would be tried" in result.output


def test_what_the_environment_names_is_no_topology_beside_that_of_a_random_mesh(tmp_path: Path):
    arguments = ("simulate", "--routers", "3", "--duration", "1s", "--faults", "none", "--addresses", "1")
    assert run(*arguments, env={"AMQPMESH_TOPOLOGY": str(tmp_path / "none.yml")}).exit_code == ExitCode.OK
    assert run(*arguments, "-t", str(tmp_path / "none.yml")).exit_code == ExitCode.USAGE


def test_what_the_environment_names_does_not_go_before_the_topology_of_a_drill(tmp_path: Path):
    drill = tmp_path / "drill.yml"
    drill.write_text("drill: d\ntopology: its-own.yml\nsteady_state: {load: {address: a}}\n")
    result = run("drill", str(drill), "-o", str(tmp_path / "o"), env={"AMQPMESH_TOPOLOGY": str(tmp_path / "other.yml")})
    assert "its-own.yml" in result.output
    result = run("drill", str(drill), "-o", str(tmp_path / "o"), "-t", str(tmp_path / "other.yml"))
    assert "other.yml" in result.output


def test_a_usage_error_does_not_repeat_the_password_of_a_url() -> None:
    for options in ([], ["--json"]):
        result = run("send", "orders", "-m", "x", "amqp://alice:hunter2@h/orders", *options)
        assert result.exit_code == ExitCode.USAGE
        assert "amqp://alice:***@h/orders" in result.output
        assert "hunter2" not in result.output
