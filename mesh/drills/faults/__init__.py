"""The injection of each kind of fault: how a fault is applied, healed, and proven to have had an effect."""

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
    """Return a new injection for ``fault``.

    ``stage`` is the copy of the mesh; None for a running mesh, where only a command of the user can be a fault.
    """
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
