"""Runs the program of the supervisor, which `amqpmesh up` becomes: `python -m mesh.commands.supervise ...`."""

from __future__ import annotations

import sys

from mesh.commands.cli import exit_code_of
from mesh.deploy.supervisor_program import read_order, run


def main() -> None:
    """Supervise by the order in the file in memory whose descriptor is the last argument."""
    order = read_order(int(sys.argv[-1]))
    sys.exit(exit_code_of(lambda: run(order), as_json=order.output.is_json))


if __name__ == "__main__":
    main()
