"""Readers of figures, each of which takes one figure out of the JSON documents that a command printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mesh.bench.repetition import SPREADS
from mesh_tests.bench.figures.model import Documents, NotMeasured, Value


def row(work: str, name: str, mode: str = "", scale: float = 1.0) -> Callable[[Documents], Value]:
    """Make a reader of ``name`` in the row of `amqpmesh bench` with the given work and mode; values are multiplied by
    ``scale``.
    """

    def read(documents: Documents) -> Value:
        rows = [each for each in documents[-1] if each["work"] == work and mode in ("", each["mode"])]
        if len(rows) != 1:
            raise NotMeasured(f"{len(rows)} rows of {work!r}, {mode!r}, expected one")
        found = rows[0].get(name)
        if found is None:
            raise NotMeasured(f"the row of {work!r} has no {name!r}")
        least, most = rows[0].get(SPREADS.get(name, ""), None) or (None, None)
        return _scaled(found, least, most, scale)

    return read


def at(*path: str | int, scale: float = 1.0) -> Callable[[Documents], Value]:
    """Make a reader of the value at ``path`` in the last document: a number, or an object with ``median``, ``least``,
    ``most``.
    """

    def read(documents: Documents) -> Value:
        found: Any = documents[-1]
        for step in path:
            try:
                found = found[step]
            except (KeyError, IndexError):
                raise NotMeasured(f"there is nothing at {'.'.join(map(str, path))}") from None
        if isinstance(found, Mapping):
            return _scaled(found["median"], found.get("least"), found.get("most"), scale)
        return _scaled(found, None, None, scale)

    return read


def slowest_change(*kinds: str) -> Callable[[Documents], Value]:
    """Make a reader of the slowest convergence, in ms, among a simulation's changes whose name begins with one of
    ``kinds``.
    """

    def read(documents: Documents) -> Value:
        times = [
            change["converged_ms"]
            for change in documents[-1]["changes"]
            if change["what"].startswith(kinds) and change["converged_ms"] is not None
        ]
        if not times:
            raise NotMeasured(f"no change of {' or '.join(kinds)}")
        return Value(max(times))

    return read


def _scaled(median: float, least: float | None, most: float | None, scale: float) -> Value:
    return Value(median * scale, None if least is None else least * scale, None if most is None else most * scale)
