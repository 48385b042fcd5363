"""A pattern that begins with '#' and is not quoted: YAML takes it for a comment, and the author is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from addressing.errors import TopologyErrors
from addressing.topology.loader import load, parse_topology

HEAD = "mesh: m\nrouters: {r1: }\n"


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        ("addresses:\n  #: anycast\n", (4, 3), "#"),
        ("addresses:\n  a: anycast\n  #.eu: anycast  # all\n", (5, 3), "#.eu"),
        ("users:\n  a:\n    send: #\n    receive: a\n", (5, 11), "#"),
        ("users:\n  a:\n    send: a\n    receive: #/eu\n", (6, 14), "#/eu"),
    ],
)
def test_a_pattern_that_is_a_comment_is_a_warning(tmp_path: Path, text: str, place: tuple[int, int], word: str) -> None:
    file = tmp_path / "mesh.yml"
    file.write_text(HEAD + text)
    (warning,) = load(file).warnings
    assert (warning.code, warning.severity, warning.line, warning.col) == ("AM009", "warning", *place)
    assert f'quote it, "{word}"' in warning.fix


@pytest.mark.parametrize(
    "text",
    [
        "addresses:\n  # a: anycast\n  #a: anycast\n  b: anycast  #: really\n#: the end\n",
        "users:\n  a:\n    send:  # nothing yet\n    receive: ['#']\n  b: # all of it\n",
        "addresses:\n  news.#: anycast\n  '#': anycast\n",
        "brokers:\n  #: none\n",
    ],
)
def test_a_comment_that_is_meant_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mesh.yml"
    file.write_text(HEAD + text)
    assert load(file).warnings == ()


@pytest.mark.parametrize(
    ("text", "col"),
    [
        ("addresses: {#: anycast}\n", 13),
        ("addresses: {a: anycast, #.eu: anycast}\n", 25),
        ("users: {a: {send: [#]}}\n", 20),
        ("users: {a: {send: [orders, #]}}\nmore: x\n", 28),
    ],
)
def test_a_pattern_that_hides_a_closing_bracket_is_what_is_wrong(text: str, col: int) -> None:
    with pytest.raises(TopologyErrors) as caught:
        parse_topology(HEAD + text)
    (error,) = caught.value.errors
    assert (error.code, error.line, error.col) == ("AM004", 3, col)
    assert "begins a comment" in error.message
    assert error.fix.startswith('quote it, "#')


def test_what_a_comment_took_away_is_told_beside_what_is_missing_for_it() -> None:
    with pytest.raises(TopologyErrors) as caught:
        parse_topology(HEAD + "addresses:\n  orders: #queue\n")
    missing, warning = caught.value.errors
    assert (missing.code, warning.code, warning.severity) == ("AM102", "AM009", "warning")
    assert warning.fix.startswith("write 'queue'")
