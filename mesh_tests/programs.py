"""How does a test run another program, read what it says, and be sure that it is gone afterwards?"""

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import mesh
from mesh_tests.waiting import wait_until

STOP_S = 10.0
CHECKOUT = Path(__file__).parents[1]
IMPORT_PATH = {"PYTHONPATH": os.pathsep.join([str(Path(mesh.__file__).parents[1]), str(CHECKOUT)])}
"""Lets a program import the packages that this process imports, be they of the checkout or of an installed wheel, and
``mesh_tests`` of the checkout."""


class Program:
    """A process with its children in a group of their own; standard output and error go to one file.

    The process is reaped after the last signal to its group: until then no other process can have its number, so no
    signal reaches another program.
    """

    def __init__(
        self, name: str, command: Sequence[str], directory: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        directory.mkdir(parents=True, exist_ok=True)
        self._output = directory / f"{name}.out"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                cwd=directory,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._exit_code() is None

    def output(self) -> str:
        return self._output.read_text(errors="replace")

    def wait_for(self, pattern: str, timeout_s: float, count: int = 1) -> None:
        """Until ``count`` lines match; AssertionError with the output if the program ends before."""

        def has_matched() -> bool:
            was_running = self.is_running
            matches = len(re.findall(pattern, self.output(), re.MULTILINE))
            assert matches >= count or was_running, "it ended before"
            return matches >= count

        try:
            wait_until(has_matched, timeout_s, f"{count} times {pattern!r}")
        except AssertionError as error:
            raise AssertionError(self._report(str(error))) from None

    def wait_success(self, timeout_s: float) -> str:
        """The whole output of a program that ends with exit code 0; AssertionError otherwise."""
        code = self._end(timeout_s)
        assert code == 0, self._report(f"exit code {code}")
        return self.output()

    def wait_failure(self, timeout_s: float) -> str:
        """The whole output of a program that ends with any other exit code; AssertionError otherwise."""
        code = self._end(timeout_s)
        assert code > 0, self._report(f"exit code {code}")
        return self.output()

    def _end(self, timeout_s: float) -> int:
        """The exit code of a program that ends by itself; what is left of its group is killed then."""
        code = self._wait(timeout_s)
        self.kill()
        return code

    def _wait(self, timeout_s: float) -> int:
        try:
            wait_until(lambda: not self.is_running, timeout_s, "its end")
        except AssertionError:
            raise AssertionError(self._report(f"still runs after {timeout_s} s")) from None
        code = self._exit_code()
        assert code is not None
        return code

    def _exit_code(self) -> int | None:
        """None while the process runs, and the negative number of the signal that ended it."""
        if self._process.returncode is not None:
            return self._process.returncode
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def stop(self) -> None:
        """End the whole group: first by request, then by force. Harmless when it has ended."""
        if self.is_running:
            self._signal(signal.SIGTERM)
            with suppress(AssertionError):
                self._wait(STOP_S)
        self.kill()

    def kill(self) -> None:
        """End the whole group by force. Harmless when it has ended."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def _report(self, what: str) -> str:
        return f"{self.name}: {what}\n--- last of its output ---\n{self.output()[-4000:]}"
