"""What does `amqpmesh store` say, and with which exit code?"""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from broker.store.addressed import addressed
from broker.store.batch import QueueKind, QueueRow, WriteBatch
from broker.store.sqlite import SqliteStore
from mesh.commands.cli import cli
from mesh.operations.store_report import subscriber
from mesh.terminal.exit_codes import ExitCode
from mesh_tests.unit.broker.store.store_of_orders import COUNT, LARGE_ID, write_store
from wire.message import Message, decode, encode


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_store(tmp_path / "data").close()
    return tmp_path / "data"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["store", *map(str, arguments)])


def test_check_shows_each_queue_and_the_sum(directory: Path) -> None:
    result = run("check", directory)
    assert result.exit_code == ExitCode.OK
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["ADDRESS", "SUBSCRIBER", "MESSAGES", "BYTES", "DELIVERED"]
    assert lines[1][:3] == ["orders", "-", "291"]
    assert lines[2][:3] == ["news.#", "reader|mine", "145"]
    assert "291 messages of" in result.stderr
    assert "bytes of deleted messages (`amqpmesh store compact` frees them)" in result.stderr


def test_a_shared_subscription_is_called_by_its_name() -> None:
    shared = QueueRow(1, QueueKind.SUBSCRIPTION, "news.#", "|shared|app", "work")
    everybodys = QueueRow(2, QueueKind.SUBSCRIPTION, "news.#", "|shared", "work")
    assert [subscriber(row) for row in (shared, everybodys)] == ["app|work (shared)", "work (shared, global)"]


def test_check_says_what_is_wrong_and_fails(directory: Path) -> None:
    (directory / "large" / str(LARGE_ID)).unlink()
    result = run("check", directory)
    assert result.exit_code == ExitCode.FAILED
    assert "wrong: message 301: large/301 is missing, expected 100,000 bytes" in result.stderr
    assert f"error: 1 fault in the message store in {directory}" in result.stderr
    document = json.loads(run("check", directory, "--json").stdout.splitlines()[0])
    assert document["schema"] == "amqpmesh.store.check/1"
    assert document["is_sound"] is False
    assert document["findings"] == ["message 301: large/301 is missing, expected 100,000 bytes"]


def test_dump_prints_each_message_as_json(directory: Path) -> None:
    result = run("dump", directory, "-a", "orders")
    documents = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(documents) == COUNT - 10 + 1
    assert documents[2]["body"] == {"sequence": 3}
    assert [document["delivery_count"] for document in documents[:4]] == [0, 0, 1, 0]
    assert documents[4]["expires_at"] == "2027-01-15T08:00:00.000+00:00"
    assert documents[-1]["file"] == str(directory / "large" / str(LARGE_ID))
    everything = [json.loads(line) for line in run("dump", directory).stdout.splitlines()]
    assert {document["subscriber"] for document in everything} == {None, "reader|mine"}


def test_dump_of_an_unknown_queue_says_what_there_is(directory: Path) -> None:
    result = run("dump", directory, "-a", "ordres")
    assert result.exit_code == ExitCode.FAILED
    assert result.stdout == ""
    assert result.stderr == (
        f"error: no queue or topic filter 'ordres' in {directory}: did you mean 'orders'?  the store "
        "has: orders, news.#\n"
    )


def test_dump_of_a_queue_without_messages_prints_nothing(directory: Path) -> None:
    store = SqliteStore(directory)
    store.load()
    store.commit(WriteBatch(queues=[QueueRow(9, QueueKind.QUEUE, "empty")]))
    store.close()
    result = run("dump", directory, "-a", "empty")
    assert (result.exit_code, result.output) == (ExitCode.OK, "")


@pytest.mark.parametrize("is_large", [False, True])
def test_dump_has_the_address_of_a_message_to_a_subscription_with_wildcards(directory: Path, is_large: bool) -> None:
    body = addressed(encode(Message("warm")), b"dev/a")
    store = SqliteStore(directory)
    inventory = store.load()
    message_id = inventory.next_message_id
    list(inventory.segments)
    row = QueueRow(9, QueueKind.SUBSCRIPTION, "dev/#", "reader", "wild")
    store.commit(
        WriteBatch(
            queues=[row],
            messages=[(message_id, len(body), 4, None, None if is_large else body)],
            entries=[(9, message_id, 0)],
            pieces=[(message_id, body)] if is_large else [],
            sealed=[message_id] if is_large else [],
        )
    )
    store.close()
    (document,) = [json.loads(line) for line in run("dump", directory, "-a", "dev/#").stdout.splitlines()]
    assert document["published_to"] == "dev/a"
    assert "damaged" not in document
    if is_large:
        file = Path(document["file"]).read_bytes()
        assert decode(file[document["lead_bytes"] :]).body == "warm"
    else:
        assert (document["body"], document["delivery_annotations"]) == ("warm", {"x-opt-to": "dev/a"})
    assert run("check", directory).exit_code == ExitCode.OK


def test_a_store_goes_to_a_backup_and_back(directory: Path, tmp_path: Path) -> None:
    assert run("backup", directory, tmp_path / "copy").exit_code == ExitCode.OK
    assert run("restore", tmp_path / "copy", tmp_path / "again").exit_code == ExitCode.OK
    assert run("dump", tmp_path / "again").stdout.replace("/again/", "/data/") == run("dump", directory).stdout


def test_nothing_is_said_of_closing_where_a_running_broker_was_backed_up(directory: Path, tmp_path: Path) -> None:
    store = SqliteStore(directory)
    store.load()
    store.commit(WriteBatch(marks={(1, 4): 50}))
    shutil.copytree(directory, tmp_path / "killed")
    copied = run("backup", directory, tmp_path / "copy")
    store.close()
    told = (
        "the broker did not close the store: at the next start up to 1,000 more messages in a queue count as "
        "delivered before"
    )
    assert told in run("check", tmp_path / "killed").stderr
    for result in (copied, run("check", tmp_path / "copy"), run("restore", tmp_path / "copy", tmp_path / "again")):
        assert result.exit_code == ExitCode.OK
        assert result.stderr.splitlines() == [
            "291 messages of 111,966 bytes in 2 segments; 360 bytes of deleted messages (`amqpmesh store compact` "
            "frees them)"
        ]


def test_compact_says_how_much_room_it_gave_back(directory: Path) -> None:
    told = json.loads(run("compact", directory, "--json").stdout)
    assert told["after_bytes"] <= told["before_bytes"]
    assert "bytes became" in run("compact", directory).stderr


@pytest.mark.parametrize("command", ["check", "dump", "compact", "backup"])
def test_what_is_no_store_is_told_in_a_sentence(tmp_path: Path, command: str) -> None:
    result = run(command, tmp_path / "nothing", *([tmp_path / "copy"] if command == "backup" else []))
    assert result.exit_code == ExitCode.FAILED
    assert result.stderr.startswith(f"error: there is no store in {tmp_path / 'nothing'}: expected the data directory")
