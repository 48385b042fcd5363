"""The topology a command is about: named by -t, or the one in the current folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from addressing.errors import TopologyErrors
from addressing.loader import Loaded, find_topology, has_topology, load
from addressing.topology import Topology
from mesh.exit_codes import ExitCode
from mesh.failure import CommandFailed


class TopologyInvalid(CommandFailed):
    """Everything that is wrong with the file, as text and as maps."""

    def __init__(self, errors: TopologyErrors) -> None:
        super().__init__(str(errors), exit_code=ExitCode.TOPOLOGY_INVALID, is_formatted=True)
        self.errors = errors.to_json()

    def to_map(self) -> dict[str, Any]:
        count = len([error for error in self.errors if error["severity"] == "error"])
        message = f"the topology has {count} error{'s' if count != 1 else ''}"
        return {"message": message, "exit_code": int(self.exit_code), "errors": self.errors}


def locate(path: Path | None) -> Path:
    """The file that ``path`` means: itself, the one in that folder, or the one in the current folder."""
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
    """The topology of the current folder, None when there is none. Raises TopologyInvalid when it is wrong."""
    return load_topology(None) if has_topology(Path()) else None
