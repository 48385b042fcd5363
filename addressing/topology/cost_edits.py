"""Writes costs of connections into the text of a topology file, where all other characters stay as they are.

The places of values are those of `document`. A form in which a cost cannot be written so, such as a value that several
places share by an alias, is refused: the changed text is read again, and has to differ in these costs alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from addressing.errors import BadValue, TopologyErrors
from addressing.topology.document import Document, parse_document
from addressing.topology.edits import replace_file
from addressing.topology.loader import parse_topology
from addressing.topology.model import Topology
from addressing.topology.problem import TextSpan

Costs = Mapping[tuple[str, str], int]
"""By the router that declares a connection, and the router that it connects to."""
_BOM = "\ufeff"


def with_costs(text: str, costs: Costs) -> str:
    """Return ``text``, a valid topology, with other costs of connections that it declares.

    Raises BadValue with the line of a connection whose cost has to be written by hand; TopologyErrors for an invalid
    text; KeyError for a connection that the text does not declare.
    """
    begin = _BOM if text.startswith(_BOM) else ""
    body = text.removeprefix(_BOM)
    for (router, to), cost in sorted(costs.items()):
        body = _with_cost(body, router, to, cost)
    return begin + body


def write_costs(path: str | Path, costs: Costs, expected: str) -> None:
    """Write costs into the file at ``path``, which is replaced as a whole or not at all.

    ``expected`` is the text that the caller has read and shown: raises BadValue if the file has another one by now. As
    `with_costs` else.
    """
    file = Path(path).resolve()
    changed = with_costs(expected, costs)
    if read_exactly(file) != expected:
        raise BadValue(f"{path} has changed meanwhile: nothing was written", "AM001")
    replace_file(file, changed)


def read_exactly(file: Path) -> str:
    """Return the text of a file with its ends of lines, and its byte order mark, as they are."""
    return file.read_bytes().decode()


def _with_cost(text: str, router: str, to: str, cost: int) -> str:
    before = parse_topology(text)
    connect = before.routers[router].connect
    i = next((i for i, connection in enumerate(connect) if connection.to == to), None)
    if i is None:
        raise KeyError(f"{router} - {to}")
    if connect[i].cost == cost:
        return text
    document = parse_document(text)
    wanted = _dumped(before)
    wanted["routers"][router]["connect"][i]["cost"] = cost
    for candidate in _candidates(text, document, ("routers", router, "connect", i), cost):
        found = parse_document(candidate)
        if not found.problems and _is_valid(candidate) and _dumped(parse_topology(candidate)) == wanted:
            return candidate
    span = document.span(("routers", router, "connect", i), at_key=False)
    line = f"line {span.line + 1}: " if span is not None else ""
    raise BadValue(f"{line}write `cost: {cost}` at the connection of {router} to {to} by hand", "AM001")


def _is_valid(text: str) -> bool:
    try:
        parse_topology(text)
    except TopologyErrors:
        return False
    return True


def _dumped(topology: Topology) -> dict[str, Any]:
    found: dict[str, Any] = topology.model_dump()
    # Lists, so that a cost may be replaced.
    found["routers"] = {
        name: {**router, "connect": [dict(each) for each in router["connect"]]}
        for name, router in found["routers"].items()
    }
    return found


def _candidates(text: str, document: Document, path: tuple[str | int, ...], cost: int) -> Iterator[str]:
    """Yield ``text`` with the cost of the connection at ``path`` in each form that the place may allow."""
    if re.search(r"\r(?!\n)", text):
        # YAML ends a line there, too, so that lines and columns of places are not those of `lines`.
        return
    lines = text.split("\n")
    written = document.spots.get((*path, "cost"))
    if written is not None and written.is_scalar and not written.is_empty:
        yield _replaced(lines, written.value, str(cost))
        return
    if written is not None and written.is_empty and written.key is not None:
        colon = lines[written.key.line].find(":", written.key.col + written.key.width)
        yield _replaced(lines, TextSpan(written.key.line, colon + 1, 0), f" {cost}")
        return
    connection, to = document.spots[path], document.spots.get((*path, "to"))
    if connection.is_scalar:
        name = _text_at(lines, connection.value)
        yield _replaced(lines, connection.value, f"{{to: {name}, cost: {cost}}}")
    elif to is not None and to.key is not None:
        end = TextSpan(to.value.line, to.value.col + to.value.width, 0)
        yield _replaced(lines, end, f", cost: {cost}")
        added = f"{' ' * to.key.col}cost: {cost}"
        is_last = end.line + 1 == len(lines)
        before, after = ("\r", "") if is_last and "\r\n" in text else ("", "\r" if lines[end.line][-1:] == "\r" else "")
        new = [*lines[: end.line], lines[end.line] + before, added + after, *lines[end.line + 1 :]]
        yield "\n".join(new)


def _text_at(lines: list[str], span: TextSpan) -> str:
    return lines[span.line][span.col : span.col + span.width]


def _replaced(lines: list[str], span: TextSpan, new: str) -> str:
    line = lines[span.line]
    changed = line[: span.col] + new + line[span.col + span.width :]
    return "\n".join([*lines[: span.line], changed, *lines[span.line + 1 :]])
