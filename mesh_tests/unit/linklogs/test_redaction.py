"""With a key, who used the mesh and for what is in no file, while what is alike stays alike."""

from __future__ import annotations

import hmac
from pathlib import Path

import pytest

from addressing.records import PERSONAL_COLUMNS
from linklogs.writer.redaction import Redactor
from linklogs.writer.settings import Settings
from mesh_tests.unit.linklogs.host import Host, rows_of
from mesh_tests.unit.linklogs.rings import START, RingWriter
from recording import ring_format as ring

KEY = b"a key of this test"
SECRETS = {
    "user": "alice-of-accounts",
    "remote_address": "198.51.100.7:4711",
    "container": "container-of-alice",
    "address": "orders-of-alice",
    "name": "link-to-orders-of-alice",
}


@pytest.fixture
def redacting(host: Host) -> Host:
    host.options = {"redact_key": KEY, "spool_bytes": 20 * ring.SLOT_BYTES}
    return host


def open_link(node: RingWriter, link: int) -> None:
    assert node.text(START, kind="link", event="opened", link=link, role="producer", **SECRETS)


def hashed(name: str) -> str:
    return hmac.new(KEY, SECRETS[name].encode(), "sha256").hexdigest()[:16]


def written(host: Host) -> bytes:
    """Every byte under the output, spools included, and what Parquet packs."""
    paths = [path for path in host.out.rglob("*") if path.is_file()]
    return b"".join(path.read_bytes() for path in paths) + str([rows_of(path) for path in host.files()]).encode()


@pytest.mark.parametrize(
    ("address", "is_of_mesh"),
    [
        ("_amqpmesh/probe/r1/4", True),
        ("_amqpmesh/broker/b1/orders", True),
        ("_amqpmesh/broker/b1/temp.4711", False),
        ("_amqpmesh/broker/b1/temp-topic.4711", False),
        ("_amqpmesh/space/acme/orders", False),
        ("orders", False),
        ("orders/_amqpmesh/", False),
    ],
)
def test_of_an_address_of_the_mesh_itself_a_reader_still_knows_that_it_is_one(address: str, is_of_mesh: bool) -> None:
    told = Redactor(KEY).row({"kind": "link", "address": address})["address"]
    digits = hmac.new(KEY, address.encode(), "sha256").hexdigest()[:16]
    assert told == (f"_amqpmesh/{digits}" if is_of_mesh else digits)


def test_what_is_personal_is_in_no_file_and_no_spool(redacting: Host) -> None:
    node = redacting.node()
    for link in range(9):
        open_link(node, link)
        node.delivery(link)
        redacting.step()
        redacting.stop()
    redacting.step(after_s=61)
    assert redacting.spools()
    found = written(redacting)
    assert len(redacting.files()) > 2
    assert b"producer" in found
    assert not [secret for secret in SECRETS.values() if secret.encode() in found]


def test_text_that_makes_no_sense_is_in_no_file_and_no_spool(redacting: Host) -> None:
    node = redacting.node()
    node.raw_text(b'{"kind": "link", "user": "alice-of-accounts')
    node.raw_text(b'{"kind": "unheard", "user": "alice-of-accounts"}')
    node.slots(b"alice-of-accounts".center(ring.SLOT_BYTES))
    node.delivery(1)
    redacting.step()
    assert redacting.spools()
    assert b"alice" not in written(redacting)
    redacting.finish()
    assert redacting.numbers() == [1]
    assert b"alice" not in written(redacting)


def test_a_value_has_the_same_hash_everywhere_and_all_else_stays(redacting: Host) -> None:
    node = redacting.node()
    open_link(node, 1)
    node.text(kind="queue", event="opened", queue=2, address=SECRETS["address"], depth_count=3)
    redacting.finish()
    link, queue = (row for row in redacting.rows() if row["kind"] in ("link", "queue") and row["event"] == "opened")
    assert link["address"] == queue["address"]
    assert len({link[name] for name in PERSONAL_COLUMNS}) == len(PERSONAL_COLUMNS)
    assert (link["role"], link["link"], queue["depth_count"]) == ("producer", 1, 3)
    assert link["user"] == hashed("user")


def test_which_columns_are_personal_is_for_the_settings(redacting: Host) -> None:
    redacting.options |= {"redact_columns": ("user",)}
    open_link(redacting.node(), 1)
    redacting.finish()
    row = next(row for row in redacting.rows() if row["kind"] == "link")
    assert row["user"] != SECRETS["user"]
    assert [name for name in PERSONAL_COLUMNS if row[name] != SECRETS[name]] == ["user"]


@pytest.mark.parametrize(("role", "is_node"), [("router", True), ("edge", True), ("broker", True), ("client", False)])
def test_a_connection_names_a_node_as_records_of_its_neighbors_do(role: str, is_node: bool) -> None:
    row = Redactor(KEY).row({"kind": "connection", "event": "opened", "role": role, "container": "r2", "user": "r2"})
    assert (row["container"] == "r2", row["user"] == "r2") == (is_node, False)


@pytest.mark.parametrize("how", ["", "closed "])
@pytest.mark.parametrize("condition", ["alice:gone", "alice", "amqp:alice@office"])
def test_what_a_peer_calls_a_reason_is_a_hash(how: str, condition: str) -> None:
    digits = hmac.new(KEY, condition.encode(), "sha256").hexdigest()[:16]
    row = Redactor(KEY).row({"kind": "link", "event": "closed", "cause": f"{how}by the peer: {condition}"})
    assert row["cause"] == f"{how}by the peer: {digits}"


@pytest.mark.parametrize(
    "cause",
    ["closed by the peer: amqp:connection:forced", "amqpmesh:path-lost", "TLS: expired:now", "closed", "no_taker"],
)
def test_reasons_that_are_ours_stay(cause: str) -> None:
    assert Redactor(KEY).row({"kind": "link", "event": "closed", "cause": cause})["cause"] == cause


def test_a_node_is_a_hash_everywhere_where_neighbors_are() -> None:
    redactor = Redactor(KEY, ("container", "neighbor"))
    told = redactor.row({"kind": "neighbor", "event": "opened", "neighbor": "r2"})
    met = redactor.row({"kind": "connection", "event": "opened", "role": "router", "container": "r2"})
    assert told["neighbor"] == met["container"] != "r2"


@pytest.mark.parametrize("column", ["kind", "event", "count", "topology", "nonsense"])
def test_what_a_record_is_cannot_be_redacted(column: str) -> None:
    with pytest.raises(ValueError, match=f"'{column}' cannot be redacted: expected one of user, remote_address"):
        Redactor(KEY, (column,))


def test_what_was_spooled_before_there_was_a_key_is_redacted_in_its_file(host: Host) -> None:
    node = host.node()
    open_link(node, 1)
    host.step()
    host.step(after_s=61)
    open_link(node, 2)
    host.step()
    host.stop()
    plain = host.files()
    host.options = {"redact_key": KEY}
    host.step()
    open_link(node, 3)
    host.finish()
    for path in plain:
        path.unlink()
    assert {row["user"] for row in host.rows() if row["kind"] == "link"} == {hashed("user")}
    assert {row["link"] for row in host.rows() if row["kind"] == "link"} == {1, 2, 3}
    assert not [secret for secret in SECRETS.values() if secret.encode() in written(host)]


def test_the_key_does_not_show() -> None:
    assert "a key" not in repr(Redactor(KEY))
    assert "a key" not in repr(Settings(Path("rings"), Path("out"), redact_key=KEY))


def test_a_key_that_comes_and_goes_loses_nothing(host: Host) -> None:
    node = host.node()
    for number, key in enumerate((None, KEY, None, KEY, KEY)):
        host.options = {"redact_key": key}
        host.step()
        if number % 2:
            node.delivery(number)
            open_link(node, number)
        host.step()
        host.stop()
    host.finish()
    assert host.numbers() == [1, 3]
    assert [secret for secret in SECRETS.values() if secret.encode() in written(host)] == []


def test_a_host_has_one_hash_whatever_the_port_of_a_connection() -> None:
    redactor = Redactor(KEY)
    addresses = ("198.51.100.7:4711", "198.51.100.7:4712", "[2001:db8::1]:4711", "198.51.100.8:4711")
    hosts, ports = zip(
        *(str(redactor.row({"remote_address": each})["remote_address"]).split(":") for each in addresses), strict=True
    )
    assert hosts[0] == hosts[1]
    assert len(set(hosts)) == 3
    assert ports[0] == ports[2] != ports[1]
    assert not {*hosts, *ports} & {part for each in addresses for part in each.split(":")}
