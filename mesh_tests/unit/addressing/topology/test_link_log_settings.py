"""What a topology says of link logs, and what it is told when that is wrong."""

from __future__ import annotations

import pytest

from addressing.errors import TopologyErrors
from addressing.records import Level
from addressing.topology.loader import parse_topology

HEAD = "mesh: m\nrouters:\n  r1:\n"


def said(text: str) -> str:
    """The one problem that there is."""
    with pytest.raises(TopologyErrors) as caught:
        parse_topology(HEAD + text)
    (problem,) = caught.value.errors
    return str(problem)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("link_logs: loud", "link_logs: level: expected off, summary, full, got 'loud'"),
        ("link_logs: {level: loud}", "link_logs: level: expected off, summary, full, got 'loud'"),
        ("link_logs: {levl: full}", "link_logs: unknown key 'levl'"),
        ("link_logs: {redact: {}}", "link_logs: redact: the key 'key' is missing"),
        ("link_logs: {redact: {kay: k, key: k}}", "link_logs: redact: unknown key 'kay'"),
        ("link_logs: {redact: {key: k, columns: [path]}}", "link_logs: redact: columns: expected"),
        ("link_logs: {redact: {key: k, columns: path}}", "address' or 'name', got 'path'"),
        ("link_logs: {redact: 5}", "link_logs: redact: expected a path, or a mapping with 'key', got 5"),
        ("link_logs: {keep_s: 7d}", "link_logs: keep_s: expected a number, got '7d'"),
        ("link_logs: {keep_bytes: 3}", "link_logs: keep_bytes: expected 1048576 or more, got 3"),
        ("link_logs: {folder: [a]}", "link_logs: folder: expected a path, got a list"),
        ("link_logs: {ring_bytes: 5}", "link_logs: ring_bytes: expected"),
        ("link_logs: {keep: no way}", "link_logs: keep: expected true or false, got 'no way'"),
        ("link_logs: 5", "link_logs: expected off, summary, full, or a mapping, got 5"),
        ("addresses: {a: {type: anycast, link_log: loud}}", "address 'a': link_log: expected off, summary, full"),
    ],
)
def test_what_is_wrong_is_said_with_place_value_and_what_was_expected(text: str, expected: str):
    assert expected in said(text)


@pytest.mark.parametrize(
    ("text", "is_recorded"),
    [
        ("", True),
        ("link_logs: 'off'", False),
        ("link_logs: off", False),
        ("link_logs: off\naddresses: {a: {type: anycast, link_log: full}}", True),
        ("link_logs: off\naddresses: {a: {type: anycast, link_log: off}}", False),
    ],
)
def test_nodes_record_unless_all_is_off(text: str, is_recorded: bool):
    assert parse_topology(HEAD + text).is_recorded is is_recorded


@pytest.mark.parametrize(
    ("text", "is_recorded", "is_kept"),
    [
        ("", True, True),
        ("link_logs: {keep: true}", True, True),
        ("link_logs: {keep: false}", True, False),
        ("link_logs: {keep: off}", True, False),
        ("link_logs: {level: off, keep: true}", False, False),
        ("link_logs: off", False, False),
    ],
)
def test_records_are_kept_in_files_unless_none_are_made_or_the_topology_says_otherwise(
    text: str, is_recorded: bool, is_kept: bool
):
    topology = parse_topology(HEAD + text)
    assert (topology.is_recorded, topology.is_kept) == (is_recorded, is_kept)


def test_a_word_is_short_for_the_level_and_a_path_for_the_key():
    logs = parse_topology(HEAD + "link_logs: full").link_logs
    assert logs.level is Level.FULL
    redact = parse_topology(HEAD + "link_logs: {redact: my.key}").link_logs.redact
    assert redact is not None
    assert (str(redact.key), "user" in redact.columns) == ("my.key", True)
