"""Users are written into a topology file that somebody else wrote by hand."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest

from addressing.errors import TopologyErrors
from addressing.topology.credentials import make_secret, parse_secret, verify_password
from addressing.topology.edits import set_user
from addressing.topology.loader import load_topology

TEXT = """\
# A mesh of mine.
mesh: m     # short

routers:
  r1:       # the first
    listeners:
      - {host: 127.0.0.1, port: 5672}   # clients
      - port: 5671
        tls: true
  "r2": {connect: [r1]}

addresses:
  'news.#': anycast

# the end
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "amqpmesh.yml"
    path.write_text(TEXT)
    return path


def changes(before: str, after: str) -> list[str]:
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [line for line in diff if not line.startswith(("---", "+++", "@@"))]


def test_a_new_user_is_added_and_nothing_else_changes(file: Path) -> None:
    secret = make_secret("example", iterations=4096)
    assert set_user(file, "alice", secret, ["orders", "news.#"], ["${user}.#"])
    assert changes(TEXT, file.read_text()) == [
        "+users:",
        "+  alice:",
        f'+    password: "{secret}"',
        '+    send: ["orders", "news.#"]',
        '+    receive: ["${user}.#"]',
    ]


def test_the_user_that_was_written_is_the_user_that_is_read(file: Path) -> None:
    set_user(file, "alice", make_secret("example", iterations=4096), ["#"], [])
    user = load_topology(file).users["alice"]
    assert user.password is not None
    assert verify_password(parse_secret(user.password), "example")
    assert (user.send, user.receive) == (("#",), ())


def test_rights_that_are_given_are_written_and_the_others_stay(file: Path) -> None:
    set_user(file, "oncall", None, view=["#"], manage=["orders.#"])
    set_user(file, "oncall", None, manage=["returns"])
    user = load_topology(file).users["oncall"]
    assert (user.send, user.view, user.browse, user.manage) == ((), ("#",), (), ("returns",))


def test_changing_a_password_keeps_permissions_and_comments(file: Path) -> None:
    file.write_text(TEXT + "users:\n  alice: {send: [orders]}   # of sales\n  bob:\n    receive: '#'  # all\n")
    secret = make_secret("new", iterations=4096)
    assert not set_user(file, "bob", secret)
    assert load_topology(file).users["bob"].receive == ("#",)
    assert "  alice: {send: [orders]}   # of sales\n" in file.read_text()
    assert "receive: '#'  # all\n" in file.read_text()


def test_a_user_without_a_password_may_be_added(file: Path) -> None:
    set_user(file, "sensor", None, ["readings"])
    assert load_topology(file).users["sensor"].password is None


def test_an_empty_users_section_is_filled(file: Path) -> None:
    file.write_text(TEXT + "users:\n")
    set_user(file, "alice", None)
    assert list(load_topology(file).users) == ["alice"]


def test_lists_that_are_not_indented_stay_so(file: Path) -> None:
    text = "mesh: m\nrouters:\n    r1:\n        listeners:\n        - port: 5672\n"
    file.write_text(text)
    set_user(file, "alice", None, ["a"])
    assert changes(text, file.read_text()) == ["+users:", "+    alice:", '+        send: ["a"]']


@pytest.mark.parametrize("user", ["a b", ""])
def test_a_change_that_would_make_the_file_wrong_is_not_made(file: Path, user: str) -> None:
    with pytest.raises(TopologyErrors):
        set_user(file, user, None)
    assert file.read_text() == TEXT
    assert os.listdir(file.parent) == [file.name]


def test_a_file_that_is_wrong_already_is_left_alone(file: Path) -> None:
    file.write_text(TEXT + "oops: 1\n")
    with pytest.raises(TopologyErrors):
        set_user(file, "alice", None)
    assert file.read_text() == TEXT + "oops: 1\n"


def test_mode_and_symbolic_link_survive(file: Path) -> None:
    file.chmod(0o640)
    link = file.parent / "link.yml"
    link.symlink_to(file)
    set_user(link, "alice", None)
    assert link.is_symlink()
    assert "alice" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o640
