"""Runs `amqpmesh apply`: carries out a plan that only adds addresses, on the nodes of this host, while they serve.

    plan -> nodes and supervisor prepare -> journal -> brokers, routers, supervisor commit -> committed revision

A refusal before the journal changes nothing. From the journal on, the revision is completed, if need be by the next
`apply`: both requests may be repeated, and a node that starts meanwhile has the old revision or the new one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from addressing.additions import conflicts
from addressing.book import AddressBook
from addressing.topology import plain
from addressing.topology.document import parse_document
from addressing.topology.loader import Loaded
from mesh.change.change_class import ChangeClass
from mesh.change.plan import plan
from mesh.change.resource import ResourceKind
from mesh.change.source import TopologySource
from mesh.deploy.control import RequestRefused, ask
from mesh.deploy.mesh_status import MeshPhase, MeshStatus, NodeState
from mesh.deploy.node_kinds import plan as plan_of_nodes
from mesh.deploy.pid_file import PidFile
from mesh.deploy.revision import Revision, commit_revision, next_revision, read_revision, replace_file
from mesh.deploy.revision_requests import cut, parts_of_addresses, requests_of
from mesh.deploy.running_processes import option_for, supervisor_pid
from mesh.deploy.workdir import SUPERVISOR, WorkDir
from mesh.operations.audited_changes import audited
from mesh.operations.change_plan import observe
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output
from mesh.terminal.topology_file import load_file

if TYPE_CHECKING:
    from addressing.topology.model import DeclaredAddress, Topology
    from mesh.change.plan import ChangePlan

ANSWERS_WITHIN_S: Final = 10.0
RETURNS_WITHIN_S: Final = 60.0
"""A node that dies on the way is started again, and taken along, within this time."""
_LOOK_S: Final = 0.1
_NAMED: Final = 20
"""Most steps and addresses that a text, or a line of the audit, names."""
_DOWN_AND_UP: Final = "`amqpmesh down`, then `amqpmesh up`."


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """What the command line asks. ``named``: the file that the user named, if any."""

    file: Path
    named: Path | None


def run(order: ApplyRequest, out: Output) -> int:
    """Bring the running mesh to the topology of the file, and return the exit code. Raises CommandFailed."""
    loaded = load_file(order.file)
    topology = loaded.topology
    workdir = WorkDir(topology.work_dir)
    check_runs(topology, workdir, order.named)
    with lease(topology.mesh, workdir):
        resumed = resume(order.file, workdir)
        if resumed is not None:
            out.say(f"{topology.mesh}: an apply that was cut off is completed: {resumed}")
        before = read_revision(workdir)
        if before is None:
            raise CommandFailed(f"{topology.mesh} was started by an earlier version of amqpmesh", fix=_DOWN_AND_UP)
        started = load_file(order.file, copy=workdir.running_topology)
        revision = next_revision(before, topology)
        added = additions(started, loaded, workdir)
        if revision == before:
            commit_revision(workdir, revision, loaded.text)
        else:
            with audited(topology, "apply", topology.mesh, audit_arguments(revision, added)) as change:
                Rollout(workdir, topology, before, revision, added).begin(loaded.text)
                change.is_begun = True
                complete(workdir, topology, before, revision, added, loaded.text)
                change.told = {"before": before.to_map(), "after": revision.to_map()}
    tell(topology.mesh, revision, added, out)
    return 0


def check_runs(topology: Topology, workdir: WorkDir, named: Path | None) -> None:
    """Raise CommandFailed unless `up` runs the mesh here, and all of its nodes are up."""
    if supervisor_pid(workdir) is None:
        raise CommandFailed(
            f"`amqpmesh up` does not run {topology.mesh} here, so there is nothing to change",
            fix=f"`amqpmesh up{option_for(named)}` starts the mesh.",
        )
    status = ask_supervisor(workdir)
    if status.phase is not MeshPhase.READY:
        raise CommandFailed(f"{topology.mesh} is {status.phase}, and changes only once it is {MeshPhase.READY}")
    away = [node.name for node in status.nodes if node.state is not NodeState.UP]
    if away:
        raise CommandFailed(
            f"{', '.join(away)} {'does' if len(away) == 1 else 'do'} not run, and a change takes every node",
            fix="`amqpmesh status` shows why.",
        )


def ask_supervisor(workdir: WorkDir) -> MeshStatus:
    try:
        return MeshStatus.from_map(ask(workdir.control_socket(SUPERVISOR), "status"))
    except OSError as error:
        raise CommandFailed(f"the supervisor of {workdir.root.name} does not answer: {error}") from None


@contextmanager
def lease(mesh: str, workdir: WorkDir) -> Iterator[None]:
    """Hold the right to change the mesh. Raises CommandFailed if another process has it."""
    file = PidFile(workdir.lease_file)
    with file:
        if not file.acquire():
            holder = file.holder()
            who = f"process {holder.pid}" if holder is not None else "another process"
            raise CommandFailed(
                f"{who} changes {mesh} right now: two changes at once are refused",
                fix="wait until it has ended, and run `amqpmesh apply` again.",
            )
        yield


def additions(started: Loaded, wanted: Loaded, workdir: WorkDir) -> dict[str, DeclaredAddress]:
    """Return the addresses that ``wanted`` declares beside those of ``started``, which runs.

    Raises CommandFailed if anything else differs, or an address in use would get another meaning.
    """
    sources = [TopologySource(each.topology, parse_document(each.text)) for each in (started, wanted)]
    found = plan(sources[0], sources[1], observe(started.topology, workdir, wanted.topology))
    refuse_others(found)
    before, after = started.topology, wanted.topology
    for name in type(after).model_fields:
        if name != "addresses" and getattr(before, name) != getattr(after, name):
            raise CommandFailed(f"`apply` cannot change {name} on a running mesh yet", fix=_DOWN_AND_UP)
    added = {name: entry for name, entry in after.addresses.items() if name not in before.addresses}
    taken = list(conflicts(AddressBook(before), added))
    if taken:
        raise CommandFailed(
            f"`apply` gives no address that may be in use another meaning: {_listed(taken)}",
            fix=f"name other addresses; or {_DOWN_AND_UP}",
        )
    return added


def refuse_others(found: ChangePlan) -> None:
    """Raise CommandFailed if the plan has steps that do anything but add addresses."""
    others = [
        f"{step.change_class.value}: {step.title}"
        for step in found.steps
        if step.kind is not ResourceKind.ADDRESS
        or step.change_class is not ChangeClass.LIVE
        or not all(each.is_added for each in step.differences)
    ]
    if others:
        raise CommandFailed(
            f"`apply` only adds addresses to a running mesh yet, and the plan has other steps: {_listed(others)}",
            fix=_DOWN_AND_UP,
        )


class Rollout:
    """The way of a revision to all processes of the mesh. ``added``: the addresses that it declares beside others."""

    def __init__(
        self,
        workdir: WorkDir,
        topology: Topology,
        before: Revision,
        revision: Revision,
        added: Mapping[str, DeclaredAddress],
    ) -> None:
        self._workdir = workdir
        self._before, self._revision = before, revision
        self._supervisor = supervisor_pid(workdir)
        self._nodes = [node.name for node in plan_of_nodes(topology)]
        """In the order in which they start: brokers first, so that no router offers a queue before its broker."""
        written = plain.written(topology, revision.mark)
        self._of_node = requests_of(parts_of_addresses(added), revision.mark, before.digest)
        self._of_supervisor = requests_of(cut(written), revision.mark, before.digest)

    def begin(self, text: str) -> None:
        """Have every process prepare, then write the journal. Raises CommandFailed, with nothing changed."""
        for name in (*self._nodes, SUPERVISOR):
            try:
                self._prepare(name)
            except RequestRefused as refused:
                raise CommandFailed(f"{shown(name)} refuses the change, so nothing was changed: {refused}") from None
            except OSError as error:
                raise CommandFailed(f"{shown(name)} does not answer, so nothing was changed: {error}") from None
        journal = {"before": vars_of(self._before), "revision": vars_of(self._revision)}
        try:
            replace_file(self._workdir.next_topology, text)
            replace_file(self._workdir.journal_file, json.dumps(journal))
        except OSError as error:
            raise CommandFailed(f"nothing was changed, since the journal cannot be written: {error}") from None

    def finish(self) -> None:
        """Have every process commit, and make sure that every node has the revision. Raises CommandFailed."""
        for name in (*self._nodes, SUPERVISOR):
            self.bring(name)
        # A node that was started by the supervisor meanwhile may have the revision before.
        for name in self._nodes:
            self.bring(name)

    def bring(self, name: str) -> None:
        """Bring one process to the revision; wait for a process that is being started again.

        The journal is written, and others may have the revision, so a node takes it whatever it has in use by now.
        """
        until = time.monotonic() + RETURNS_WITHIN_S
        while True:
            self.check_same_mesh()
            try:
                if not self._has(name):
                    self._prepare(name, is_decided=True)
                    self._ask(name, "commit_revision", number=self._revision.number, hash=self._revision.digest)
                return
            except RequestRefused as refused:
                what = f"{shown(name)} refuses {self._revision}, which other nodes may have: {refused}"
                raise CommandFailed(what, fix="remove the cause, and run `amqpmesh apply` again.") from None
            except OSError as error:
                if time.monotonic() >= until:
                    what = f"{shown(name)} does not answer, and may not have {self._revision}: {error}"
                    raise CommandFailed(what, fix="once it runs, run `amqpmesh apply` again.") from None
            time.sleep(_LOOK_S)

    def check_same_mesh(self) -> None:
        """Raise CommandFailed if the mesh was stopped, or started again: that mesh has the revision of its own `up`."""
        if supervisor_pid(self._workdir) != self._supervisor:
            raise CommandFailed(
                f"the mesh was stopped while it was brought to {self._revision}",
                fix="`amqpmesh up` starts the mesh from the file.",
            )

    def _has(self, name: str) -> bool:
        told = self._ask(name, "revision")
        return bool((told["number"], told["hash"]) == self._revision.mark)

    def _prepare(self, name: str, *, is_decided: bool = False) -> None:
        for request in self._of_supervisor if name == SUPERVISOR else self._of_node:
            if self._ask(name, "prepare_revision", is_decided=is_decided, **request)["is_complete"]:
                break

    def _ask(self, name: str, op: str, **arguments: Any) -> Any:
        return ask(self._workdir.control_socket(name), op, timeout_s=ANSWERS_WITHIN_S, **arguments)


def complete(
    workdir: WorkDir,
    topology: Topology,
    before: Revision,
    revision: Revision,
    added: Mapping[str, DeclaredAddress],
    text: str,
) -> None:
    """Bring a revision whose journal is written to every process, and make it the committed one."""
    rollout = Rollout(workdir, topology, before, revision, added)
    rollout.finish()
    rollout.check_same_mesh()
    commit_revision(workdir, revision, text)
    workdir.journal_file.unlink(missing_ok=True)
    workdir.next_topology.unlink(missing_ok=True)


def resume(file: Path, workdir: WorkDir) -> Revision | None:
    """Complete the revision of an apply that was cut off, and return it; None if there is none."""
    try:
        journal = json.loads(workdir.journal_file.read_text())
    except FileNotFoundError:
        return None
    before, revision = Revision(**journal["before"]), Revision(**journal["revision"])
    wanted = load_file(file, copy=workdir.next_topology)
    old = load_file(file, copy=workdir.running_topology).topology.addresses
    added = {name: entry for name, entry in wanted.topology.addresses.items() if name not in old}
    with audited(wanted.topology, "apply", wanted.topology.mesh, audit_arguments(revision, added)) as change:
        change.is_begun = True
        complete(workdir, wanted.topology, before, revision, added, wanted.text)
        change.told = {"before": before.to_map(), "after": revision.to_map()}
    return revision


def tell(mesh: str, revision: Revision, added: Mapping[str, DeclaredAddress], out: Output) -> None:
    if out.is_json:
        out.document({"mesh": mesh, "revision": revision.to_map(), "added": list(added)})
    elif added:
        out.data(f"{mesh} runs {revision}, with {len(added):,} more address{'es' if len(added) != 1 else ''}")
    else:
        out.data(f"{mesh} runs {revision}: no changes")


def audit_arguments(revision: Revision, added: Mapping[str, DeclaredAddress]) -> dict[str, Any]:
    return {"revision": revision.number, "addresses": len(added), "added": list(added)[:_NAMED]}


def shown(name: str) -> str:
    return "the supervisor" if name == SUPERVISOR else name


def vars_of(revision: Revision) -> dict[str, Any]:
    return {"number": revision.number, "digest": revision.digest, "seal": revision.seal, "key": revision.key}


def _listed(sentences: Sequence[str]) -> str:
    more = f"; and {len(sentences) - _NAMED:,} more" if len(sentences) > _NAMED else ""
    return "; ".join(sentences[:_NAMED]) + more
