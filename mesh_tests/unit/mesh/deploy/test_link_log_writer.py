"""The process that writes link logs."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

PROGRAM = """
import signal
import sys
from pathlib import Path
from mesh.deploy import link_log_writer
from mesh.terminal.topology_file import load_topology

def settings_of(*arguments, settings_of=link_log_writer.settings_of):
    signal.raise_signal(signal.SIGTERM)
    return settings_of(*arguments)

link_log_writer.settings_of = settings_of
link_log_writer.write(load_topology(Path(sys.argv[1])))
print(*sorted({"linklogs.writer.encoding", "pandas", "pyarrow"} & set(sys.modules)))
"""


def test_the_writer_starts_without_pandas_which_pyarrow_would_import(tmp_path: Path) -> None:
    assert find_spec("pandas") is not None
    (tmp_path / "amqpmesh.yml").write_text("mesh: m\nrouters: {r1: }\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "amqpmesh.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["linklogs.writer.encoding", "pyarrow"]
