"""Runs the `amqpmesh` command for `python -m mesh`."""

from mesh.commands.cli import main

main()
