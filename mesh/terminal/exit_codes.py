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
    DATA_LOSS = 96
    DRILL_INVALID = 98
    EXPECTATION_FAILED = 99
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "failed, or an outcome differs from --expect",
    ExitCode.USAGE: "wrong usage",
    ExitCode.TOPOLOGY_INVALID: "the topology or drill file is invalid",
    ExitCode.UNREACHABLE: "no connection: no server, login refused, or connection lost; or no mesh runs",
    ExitCode.STORE_DAMAGED: "files of a broker's store are damaged, missing or older: no file was changed",
    ExitCode.TIMEOUT: "timed out waiting",
    ExitCode.DATA_LOSS: "a plan may lose messages whose names --allow-data-loss does not give",
    ExitCode.DRILL_INVALID: "a drill is invalid: a fault had no proven effect, no message arrived, or it ended early",
    ExitCode.EXPECTATION_FAILED: "a drill failed: an expectation was not met",
    ExitCode.INTERRUPTED: "stopped by Ctrl-C",
}
