"""The start of a node: every mesh waits for it, once for each node."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from addressing.topology.loader import load_topology
from mesh.deploy.node_process import TOPOLOGY_FD
from mesh.deploy.node_program import topology_descriptor
from mesh.deploy.pki import make_pki
from mesh_tests.ports import free_port
from mesh_tests.programs import IMPORT_PATH

HEAVY = (
    *("pydantic", "pydantic_core", "ruamel", "ruamel.yaml", "addressing.topology.model", "addressing.topology.loader"),
    *("cryptography", "pycparser", "cffi", "jinja2", "rich", "numpy", "networkx", "pyarrow", "pyspark"),
    *("linklogs", "mesh.certs", "mesh.client.client", "mesh.deploy.supervisor", "mesh.deploy.probe", "mesh.simulation"),
)
SCRIPT = f"""
import gc, sys
from mesh.commands.run_node import main
from mesh.deploy import node_run

started = node_run.NodeRun._on_started

async def stop_at_once(run, handlers):
    was_on = gc.isenabled()
    await started(run, handlers)
    print([name for name in {HEAVY!r} if name in sys.modules], was_on, gc.isenabled())
    run._stop.set()

node_run.NodeRun._on_started = stop_at_once
main()
"""


@pytest.mark.parametrize("node", ["r1", "b1"])
def test_a_node_starts_without_heavy_modules_and_collects_garbage_only_once_it_has_started(
    node: str, tmp_path: Path
) -> None:
    (tmp_path / "amqpmesh.yml").write_text(
        f"mesh: m\nrouters: {{r1: {{port: {free_port()}}}}}\nbrokers: {{b1: {{port: {free_port()}, data: ./data}}}}\n"
    )
    topology = load_topology(tmp_path / "amqpmesh.yml")
    make_pki(topology)
    descriptor = topology_descriptor(topology)
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, "node", node, TOPOLOGY_FD, str(descriptor)],
        pass_fds=[descriptor],
        cwd=tmp_path,
        env=os.environ | IMPORT_PATH,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "[] False True\n", done.stderr
