"""Checks for `amqpmesh doctor` whether this machine can run a mesh. Checks return DoctorFindings and change nothing."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import resource
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mesh.operations import report_requirements as lacking
from mesh.operations.finding import DoctorFinding

if TYPE_CHECKING:
    from addressing.topology.model import Topology

OLDEST_PYTHON = (3, 11)
WANTED_DESCRIPTORS = 4096
WANTED_DISK_BYTES = 1 << 30
DAMAGED_FIX = "replace the file; of a node of the mesh, remove the file and its key, and amqpmesh makes new ones."
EARLIEST_CLOCK = 1735689600  # 2025-01-01: an earlier clock is wrong, and certificates made by it would end too early
EXPIRY_WARNING_S = 30 * 86400


def examine(topology: Topology | None, wrong: str | None = None) -> Iterator[DoctorFinding]:
    """Yield the findings of all checks; without ``topology``, checks of its ports and certificates are left out.

    ``wrong`` is the error of a topology that cannot be used, if any, and becomes a finding.
    """
    for check in (python, compiler, python_headers, proton, descriptors, clock):
        yield check()
    yield disk(topology.directory if topology is not None else Path())
    if wrong is not None:
        yield DoctorFinding("topology", "failed", wrong, "`amqpmesh check` shows what is wrong.")
    if topology is not None:
        yield from ports(topology)
        yield from tls_files(topology)
    yield lacking.java()
    yield lacking.spark()
    yield from (optional(*tool) for tool in OPTIONAL)


def python() -> DoctorFinding:
    version = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        return DoctorFinding("python", "failed", version, "install Python 3.11 or newer.")
    return DoctorFinding("python", "ok", f"{version} at {sys.executable}")


def compiler() -> DoctorFinding:
    found = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    if found is None:
        return DoctorFinding(
            "compiler", "warning", "no C compiler found: pip compiles proton during installation", "apt install gcc"
        )
    return DoctorFinding("compiler", "ok", found)


def python_headers() -> DoctorFinding:
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.exists():
        return DoctorFinding("python headers", "warning", f"no {header}", "apt install python3-dev")
    return DoctorFinding("python headers", "ok", str(header.parent))


def proton() -> DoctorFinding:
    if importlib.util.find_spec("proton") is None:
        return DoctorFinding("proton", "failed", "not installed", "pip install python-qpid-proton")
    try:
        libraries = importlib.import_module("wire.engine").LIBRARIES
    except (ImportError, OSError) as error:
        return DoctorFinding("proton", "failed", str(error), "pip install --force-reinstall python-qpid-proton")
    built = f", built with {' and '.join(libraries)}, which amqpmesh does not use" if libraries else ""
    return DoctorFinding(
        "proton", "ok", f"python-qpid-proton {importlib.metadata.version('python-qpid-proton')}{built}"
    )


def descriptors() -> DoctorFinding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < WANTED_DESCRIPTORS:
        wanted = min(hard, 65536)
        return DoctorFinding(
            "open files",
            "warning",
            f"limit {soft}: a node can have at most that many connections",
            f"ulimit -n {wanted}",
        )
    return DoctorFinding("open files", "ok", f"limit {soft}")


def clock() -> DoctorFinding:
    now = time.time()
    told = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if now < EARLIEST_CLOCK:
        return DoctorFinding(
            "clock", "failed", f"{told}: certificates would not be valid", "set the clock, or run NTP."
        )
    return DoctorFinding("clock", "ok", told)


def disk(folder: Path) -> DoctorFinding:
    free = shutil.disk_usage(folder).free
    told = f"{free / (1 << 30):.1f} GiB free at {folder.resolve()}"
    if free < WANTED_DISK_BYTES:
        return DoctorFinding("disk", "warning", told, "free some space: brokers stop accepting when the disk is full.")
    return DoctorFinding("disk", "ok", told)


def ports(topology: Topology) -> Iterator[DoctorFinding]:
    """Yield a finding for each port of the topology: a port must be free on this machine, unless its node runs."""
    from mesh.deploy.running_processes import node_pid
    from mesh.deploy.workdir import WorkDir

    workdir = WorkDir(topology.work_dir)
    for node, host, port in listening(topology):
        pid = node_pid(workdir, node)
        if pid is not None:
            yield DoctorFinding(f"port {port}", "ok", f"{node} runs there as process {pid}")
        else:
            yield port_finding(node, host, port)


def listening(topology: Topology) -> Iterator[tuple[str, str, int]]:
    from mesh.deploy.node_kinds import all_nodes

    for node in all_nodes(topology):
        for host, port in node.kind.ports(topology, node.name):
            yield node.name, host, port


def port_finding(node: str, host: str, port: int) -> DoctorFinding:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        # SO_REUSEADDR is set as in the nodes: with it, a port whose last connections are in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            detail = f"{node} cannot listen on {host}:{port}: {os.strerror(error.errno or 0).lower()}"
            return DoctorFinding(
                f"port {port}", "failed", detail, f"`ss -ltnp 'sport = :{port}'` shows the process that uses the port."
            )
    return DoctorFinding(f"port {port}", "ok", f"free for {node} on {host}")


def tls_files(topology: Topology) -> Iterator[DoctorFinding]:
    """Yield a finding for each certificate that the topology names for a router's listener, and for each certificate of
    the mesh: valid, about to expire (within 30 days), expired or unreadable.
    """
    from mesh.deploy.workdir import WorkDir

    named = [
        topology.locate(listener.tls.cert)
        for router in topology.routers.values()
        for listener in router.listeners
        if listener.tls is not None and listener.tls.cert is not None
    ]
    issued = sorted(WorkDir(topology.work_dir).pki.rglob("*.pem"))
    for path in (*named, *issued):
        finding = certificate_finding(path)
        if finding is not None:
            yield finding


def certificate_finding(path: Path) -> DoctorFinding | None:
    """Return the finding on the expiry of the certificate in file ``path``, or on a file that cannot be read; None if
    the file has no certificate.
    """
    from cryptography import x509

    check = f"certificate {path.name}"
    try:
        text = path.read_bytes()
    except OSError as error:
        return DoctorFinding(check, "failed", f"{path}: {error.strerror}", "correct the path in the topology.")
    if b"BEGIN CERTIFICATE" not in text:
        return None
    try:
        certificate = x509.load_pem_x509_certificate(text)
    except ValueError:
        return DoctorFinding(check, "failed", f"{path} is damaged: expected a certificate in PEM", DAMAGED_FIX)
    left_s = certificate.not_valid_after_utc.timestamp() - time.time()
    if left_s <= 0:
        return DoctorFinding(check, "failed", f"{path} expired {-left_s / 86400:.0f} days ago", "amqpmesh certs renew")
    if left_s < EXPIRY_WARNING_S:
        return DoctorFinding(check, "warning", f"{path} expires in {left_s / 86400:.0f} days", "amqpmesh certs renew")
    return DoctorFinding(check, "ok", f"valid for {left_s / 86400:.0f} days")


OPTIONAL: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("docker", ("docker", "--version"), "for containers: apt install docker.io"),
    ("rabbitmq", ("rabbitmqctl", "version"), "to attach RabbitMQ in the interop tests: apt install rabbitmq-server"),
)


def optional(name: str, command: tuple[str, ...], fix: str) -> DoctorFinding:
    if shutil.which(command[0]) is None:
        return DoctorFinding(name, "absent", "not installed; optional", fix)
    return DoctorFinding(name, "ok", version_of(command))


def version_of(command: tuple[str, ...]) -> str:
    """Return the first line that ``command`` prints, or the path of its program if the command prints none, fails to
    start, or runs over 5 s.
    """
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return str(shutil.which(command[0]))
    lines = (told.stdout or told.stderr).strip().splitlines()
    return lines[0] if lines else str(shutil.which(command[0]))
