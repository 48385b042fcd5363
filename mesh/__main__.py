"""`python -m mesh` is the `amqpmesh` command."""

from mesh.cli import main

main()
