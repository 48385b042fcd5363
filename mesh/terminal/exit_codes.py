"""The exit codes of `amqpmesh`, by which scripts tell failures apart without reading texts."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 64
    TOPOLOGY_INVALID = 65
    UNREACHABLE = 69
    STORE_DAMAGED = 74
    TIMEOUT = 75
    DRILL_INVALID = 98
    EXPECTATION_FAILED = 99
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "failed, or an outcome differs from --expect",
    ExitCode.USAGE: "wrong usage",
    ExitCode.TOPOLOGY_INVALID: "the topology or drill file is invalid",
    ExitCode.UNREACHABLE: "no connection: nobody there, login refused, or lost on the way; no mesh runs",
    ExitCode.STORE_DAMAGED: "files of a broker's store are damaged, missing or older: nothing was started or changed",
    ExitCode.TIMEOUT: "timed out waiting",
    ExitCode.DRILL_INVALID: "a drill proved nothing: a fault did not bite, nothing flowed, or it ended early",
    ExitCode.EXPECTATION_FAILED: "a drill failed: an expectation does not hold",
    ExitCode.INTERRUPTED: "stopped by Ctrl-C",
}
