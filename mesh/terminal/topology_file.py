"""Loads the topology for a command: the file that option -t names, or the topology file in the current folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from addressing.errors import TopologyErrors
from addressing.topology.loader import Loaded, find_topology, has_topology, load
from addressing.topology.model import Topology
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed


class TopologyInvalid(CommandFailed):
    """The failure of a command for an invalid topology: all errors and warnings, as one text, and as maps for JSON."""

    def __init__(self, errors: TopologyErrors) -> None:
        super().__init__(str(errors), exit_code=ExitCode.TOPOLOGY_INVALID, is_formatted=True)
        self.errors = errors.to_json()

    def to_map(self) -> dict[str, Any]:
        count = len([error for error in self.errors if error["severity"] == "error"])
        message = f"the topology has {count} error{'s' if count != 1 else ''}"
        return {"message": message, "exit_code": int(self.exit_code), "errors": self.errors}


def locate(path: Path | None) -> Path:
    """Return the topology file for ``path``: a folder is searched for its topology file, any other path is returned as
    given, even if no file is there.

    None stands for the current folder. Raises TopologyInvalid if the folder has no topology file, or has several.
    """
    try:
        if path is None or path.is_dir():
            return find_topology(path or Path())
    except TopologyErrors as errors:
        raise TopologyInvalid(errors) from None
    return path


def load_file(path: Path | None, *, copy: Path | None = None) -> Loaded:
    try:
        return load(locate(path), copy=copy)
    except TopologyErrors as errors:
        raise TopologyInvalid(errors) from None


def load_topology(path: Path | None) -> Topology:
    return load_file(path).topology


def find_nearby() -> Topology | None:
    """Return the topology in the current folder, or None if there is no topology file. Raises TopologyInvalid if the
    file is invalid, or several files could be the topology.
    """
    return load_topology(None) if has_topology(Path()) else None
