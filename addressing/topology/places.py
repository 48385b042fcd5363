"""Finds the line of a topology's file in which something is declared, for texts that name it."""

from __future__ import annotations

from addressing.errors import TopologyErrors
from addressing.topology.document import Document, parse_document
from addressing.topology.loader import read_text
from addressing.topology.model import Topology


class TopologyPlaces:
    """The places of the entries of ``topology`` in its file; there are none if the file cannot be read."""

    def __init__(self, topology: Topology) -> None:
        self._name = topology.file.name if topology.file is not None else ""
        self._document: Document | None = None
        if topology.file is not None:
            try:
                self._document = parse_document(read_text(topology.file))
            except (OSError, TopologyErrors):
                self._document = None

    def line(self, *path: str | int) -> int | None:
        """Return the line, counted from 1, of the key or list item at ``path``; None if it is not in the file."""
        if self._document is None or path not in self._document.spots:
            return None
        span = self._document.span(path, at_key=isinstance(path[-1], str))
        return span.line + 1 if span is not None else None

    def place(self, *path: str | int) -> str | None:
        """Return the place as `amqpmesh.yml:12`; None if it is not in the file."""
        line = self.line(*path)
        return f"{self._name}:{line}" if line is not None else None
