"""Is the committed revision the topology that a mesh runs: the same for the same values, and without a secret?"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from addressing.topology import edits
from addressing.topology.credentials import make_secret
from addressing.topology.loader import load, parse_topology
from mesh.deploy.revision import Revision, commit_revision, next_revision, read_revision, replace_file
from mesh.deploy.workdir import WorkDir
from mesh_tests.unit.addressing.topology.test_plain import EVERYTHING

TEXT = """
mesh: m
routers: {r1: }
brokers: {b1: {url: "amqp://app:hunter2@broker.example:5672"}}
addresses: {orders: queue, rpc: anycast}
"""
USERS = "users: {alice: {password: '%s', send: ['#']}}\n"


@pytest.fixture
def workdir(tmp_path: Path) -> WorkDir:
    found = WorkDir(tmp_path / ".amqpmesh" / "m")
    found.make()
    return found


def revision_of(text: str, before: Revision | None = None) -> Revision:
    return next_revision(before, parse_topology(text))


def test_the_first_revision_is_1_and_a_changed_value_makes_the_next() -> None:
    first = revision_of(TEXT)
    second = revision_of(TEXT.replace("rpc: anycast", "rpc: multicast"), first)
    assert (first.number, second.number) == (1, 2)
    assert first.digest != second.digest
    assert revision_of(TEXT, second).number == 3, "the way back is a revision of its own"


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"# a comment\n{TEXT}",
        TEXT.replace("orders: queue, rpc: anycast", "rpc: {type: anycast}, orders: {type: queue, priority: 4}"),
    ],
)
def test_the_same_values_keep_the_number_whatever_the_text(text: str) -> None:
    first = revision_of(TEXT)
    assert revision_of(text, first) == first


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TEXT, TEXT.replace("hunter2", "hunter3")),
        (
            TEXT + USERS % make_secret("pencil", salt=b"0123456789abcdef"),
            TEXT + USERS % make_secret("eraser", salt=b"0123456789abcdef"),
        ),
    ],
)
def test_another_password_is_another_revision_with_the_same_hash(before: str, after: str) -> None:
    first = revision_of(before)
    second = revision_of(after, first)
    assert (second.number, second.digest) == (2, first.digest)


def test_the_hash_is_the_same_on_two_hosts_and_nobody_can_try_passwords_against_what_is_told() -> None:
    one, other = revision_of(TEXT), revision_of(TEXT)
    assert one.to_map() == other.to_map() == {"number": 1, "hash": one.digest}
    assert one.seal != other.seal
    assert one.digest != revision_of(TEXT.replace("broker.example", "other.example")).digest


def test_every_key_of_a_topology_counts(tmp_path: Path) -> None:
    file = tmp_path / "amqpmesh.yml"
    file.write_text(EVERYTHING)
    topology = load(file).topology
    first = next_revision(None, topology)
    assert next_revision(first, load(file).topology) == first
    for name in type(topology).model_fields:
        other = topology.model_copy(update={name: None})
        assert next_revision(first, other).number == 2 or getattr(topology, name) is None, name


def test_a_committed_revision_is_read_back_with_its_text_and_belongs_to_its_owner_alone(workdir: WorkDir) -> None:
    assert read_revision(workdir) is None
    first = revision_of(TEXT)
    commit_revision(workdir, first, TEXT)
    assert read_revision(workdir) == first
    assert workdir.running_topology.read_text() == TEXT
    assert [file.stat().st_mode & 0o777 for file in (workdir.running_topology, workdir.revision_file)] == [0o600] * 2
    assert "hunter2" not in workdir.revision_file.read_text()
    commit_revision(workdir, first, TEXT)
    assert sorted(path.name for path in workdir.running_topology.parent.iterdir()) == ["revision.json", "topology.yml"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"number": 1}', json.dumps({"number": "x", "hash": "", "key": ""})])
def test_a_damaged_file_is_no_revision(workdir: WorkDir, text: str) -> None:
    workdir.revision_file.write_text(text)
    assert read_revision(workdir) is None


@pytest.mark.parametrize("replace", [replace_file, edits.replace_file])
def test_a_full_disk_leaves_the_file_as_it_was_and_is_an_error_that_names_the_file(
    replace: Callable[[Path, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "topology.yml"
    file.write_text("old")

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=str(file)) as raised:
        replace(file, "new")
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(file))
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("topology.yml", "old")]
