"""The failure of a command: a message, a fix for the user, and the exit code."""

from __future__ import annotations

import shutil
from typing import Any

from mesh.client.errors import MeshError, TimedOut, Unreachable
from mesh.terminal.exit_codes import ExitCode


class CommandFailed(MeshError):
    """The failure of a command, raised anywhere in its code; the command line prints the message and the fix, and exits
    with ``exit_code``.
    """

    def __init__(
        self,
        message: str,
        *,
        exit_code: ExitCode = ExitCode.FAILED,
        fix: str | None = None,
        code: str | None = None,
        is_formatted: bool = False,
    ) -> None:
        """Make the failure; ``is_formatted``: the message is a complete text of several lines, shown without the prefix
        `error:`.
        """
        super().__init__(message, fix=fix, code=code)
        self.exit_code = exit_code
        self.is_formatted = is_formatted

    def to_map(self) -> dict[str, Any]:
        told = {"message": self.message, "exit_code": int(self.exit_code), "fix": self.fix, "code": self.code}
        return {key: value for key, value in told.items() if value is not None}


def as_failure(error: MeshError) -> CommandFailed:
    """Return a client library's ``error`` as the failure of a command, with the exit code for the error's class."""
    if isinstance(error, CommandFailed):
        return error
    return CommandFailed(error.message, exit_code=_exit_code_of(error), fix=error.fix, code=error.code)


def describe_file_error(error: OSError) -> str:
    """Return the file or folder of ``error`` and the reason; of several files that cannot be copied, the first."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        source, _, reason = error.args[0][0]
        return f"{source}: {reason}"
    return f"{error.filename}: {error.strerror}"


def _exit_code_of(error: MeshError) -> ExitCode:
    if isinstance(error, Unreachable):
        return ExitCode.UNREACHABLE
    return ExitCode.TIMEOUT if isinstance(error, TimedOut) else ExitCode.FAILED
