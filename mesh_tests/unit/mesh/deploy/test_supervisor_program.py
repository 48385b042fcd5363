"""The program that `amqpmesh up` becomes, and its helper process, which decides whether the mesh is ready."""

from __future__ import annotations

import os
import subprocess
import sys

from mesh_tests.programs import IMPORT_PATH

HEAVY = {"pydantic", "ruamel", "cryptography", "proton", "cffi", "pyarrow", "numpy"}
PROGRAM = """
import asyncio, os, signal, sys
from mesh.client.errors import MeshError
from mesh.deploy.readiness_helper import HelperReadiness, fork_helper

class Readiness:
    def __init__(self):
        self.told = "r1 does not answer"
    async def wait_linked(self):
        await asyncio.sleep(0.3 if how != "never" else 300)
        self.told = ""
    async def wait_probed(self):
        if how == "failing":
            raise MeshError("no probe came back")
        if how == "dying":
            os._exit(1)
    def missing(self):
        return self.told

how = sys.argv[1]
helper = fork_helper(Readiness())
readiness = HelperReadiness(helper)

async def main():
    try:
        async with asyncio.timeout(1.0 if how == "never" else 30.0):
            await readiness.wait_linked()
            print("linked")
            await readiness.wait_probed()
            print("probed")
    except TimeoutError:
        print("missing:", readiness.missing())
    except MeshError as error:
        print("error:", error.message)

asyncio.run(main())
try:
    os.kill(helper.pid, 0)
except ProcessLookupError:
    print("gone")
"""

NEVER_ASKED = """
import os
from mesh.deploy.readiness_helper import fork_helper

looked, looks = os.pipe()

class Readiness:
    async def wait_linked(self):
        os.write(looks, b"looked at")
    async def wait_probed(self): ...
    def missing(self):
        os.write(looks, b"looked at")
        return ""

helper = fork_helper(Readiness())
os.close(helper.descriptor)
os.waitpid(helper.pid, 0)
os.close(looks)
print(os.read(looked, 100).decode() or "not looked at")
"""


def run(*arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | IMPORT_PATH,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_helper_tells_when_the_mesh_is_linked_and_probed_and_ends() -> None:
    assert run("-c", PROGRAM, "well") == ["linked", "probed", "gone"]


def test_the_helper_looks_at_no_node_before_the_supervisor_has_started_them() -> None:
    assert run("-c", NEVER_ASKED) == ["not looked at"]


def test_the_helper_tells_what_is_missing_while_the_mesh_is_not_linked() -> None:
    assert run("-c", PROGRAM, "never") == ["missing: r1 does not answer"]


def test_an_error_of_a_probe_is_an_error_of_the_supervisor() -> None:
    assert run("-c", PROGRAM, "failing")[:2] == ["linked", "error: no probe came back"]


def test_a_helper_that_dies_fails_the_start() -> None:
    said = run("-c", PROGRAM, "dying")[:2]
    assert said == ["linked", "error: the process that finds out whether the mesh is ready has ended"]


def test_the_program_of_the_supervisor_imports_nothing_heavy() -> None:
    code = "import sys; import mesh.commands.supervise; print(*sorted(sys.modules), sep='\\n')"
    found = {name.partition(".")[0] for name in run("-c", code)}
    assert "asyncio" in found
    assert found & HEAVY == set()
