"""How each kind of a drill's faults is injected, healed, and shown to have taken effect."""

from __future__ import annotations

from mesh.drills.faults.certificates import ExpiredCertificate
from mesh.drills.faults.commands import CommandInjection
from mesh.drills.faults.disks import FullDisk
from mesh.drills.faults.injection import Injection
from mesh.drills.faults.links import LINK_INJECTIONS
from mesh.drills.faults.processes import PROCESS_INJECTIONS
from mesh.drills.leases import Leases
from mesh.drills.mesh_copy import MeshCopy
from mesh.drills.model import Command, DiskFull, ExpireCertificate, Fault, LinkFault, NodeFault


def injection_of(fault: Fault, stage: MeshCopy | None, leases: Leases) -> Injection:
    """Return the injection of ``fault``. ``stage`` is None where the mesh is not ours: only commands work there."""
    if isinstance(fault, Command):
        return CommandInjection(fault, leases)
    assert stage is not None
    if isinstance(fault, DiskFull):
        return FullDisk(fault, stage)
    if isinstance(fault, ExpireCertificate):
        return ExpiredCertificate(fault, stage)
    if isinstance(fault, LinkFault):
        return LINK_INJECTIONS[fault.kind](fault, stage)
    assert isinstance(fault, NodeFault)
    return PROCESS_INJECTIONS[fault.kind](fault, stage)


__all__ = ["Injection", "injection_of"]
