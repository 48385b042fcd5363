"""Why a command ends without success: a sentence, what to do about it, and the exit code."""

from __future__ import annotations

from typing import Any

from mesh.exit_codes import ExitCode


class CommandFailed(Exception):
    """Raised anywhere below a command; shown once, by the command line. Not a bug of ours: no stack trace."""

    def __init__(
        self,
        message: str,
        *,
        exit_code: ExitCode = ExitCode.FAILED,
        fix: str | None = None,
        code: str | None = None,
        is_formatted: bool = False,
    ) -> None:
        """``is_formatted``: the message is several lines that say all, to be shown as they are."""
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code
        self.fix = fix
        self.code = code
        self.is_formatted = is_formatted

    def to_map(self) -> dict[str, Any]:
        told = {"message": self.message, "exit_code": int(self.exit_code), "fix": self.fix, "code": self.code}
        return {key: value for key, value in told.items() if value is not None}


class Unreachable(CommandFailed):
    def __init__(self, message: str, *, fix: str | None = None) -> None:
        super().__init__(message, exit_code=ExitCode.UNREACHABLE, fix=fix)


class TimedOut(CommandFailed):
    def __init__(self, message: str, *, fix: str | None = None) -> None:
        super().__init__(message, exit_code=ExitCode.TIMEOUT, fix=fix)
