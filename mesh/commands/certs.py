"""`amqpmesh certs show|make|issue|renew|export`"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mesh.terminal.failure import CommandFailed
from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output

if TYPE_CHECKING:
    from mesh.certs import Certificate

COLUMNS = ("ROLE", "NAME", "VALID UNTIL", "DAYS LEFT", "HOSTS", "FILE")


@click.group("certs")
def command() -> None:
    """Show, make, issue, renew and export the certificates of a mesh.

    The first `up` makes an authority for the mesh, and a certificate for each node and for this machine's operator.
    """


@command.command("show")
@topology_option
@output_options
def show_all(topology_path: Path | None, out: Output) -> None:
    """List all certificates of the mesh, and when they end.

    \b
    Example:
      amqpmesh certs show --json
    """
    from mesh.certs import list_certificates

    with told():
        tell(list_certificates(folder(topology_path)), out)


@command.command("make")
@topology_option
@output_options
def make_missing(topology_path: Path | None, out: Output) -> None:
    """Make what is missing: the authority, a certificate for each node and one for this machine's operator.

    `up` does this by itself. For a mesh of several machines: make them on one, and copy to each of the others ca.pem
    and the two files of the node that runs there.

    \b
    Example:
      amqpmesh certs make -t /etc/amqpmesh/amqpmesh.yml
    """
    from mesh.certs import list_certificates
    from mesh.deploy.pki import make_pki
    from mesh.deploy.workdir import WorkDir
    from mesh.terminal.topology_file import load_topology

    topology = load_topology(topology_path)
    pki = WorkDir(topology.work_dir).pki
    with told():
        before = {one.serial for one in list_certificates(pki)}
        certificates = make_pki(topology)
        if out.is_json:
            tell(certificates, out)
        elif not topology.node_tls:
            out.say("the nodes of this mesh need no certificates: node_tls is false")
        else:
            now_there = list_certificates(pki)
            tell(now_there, out)
            made = sum(one.serial not in before for one in now_there)
            out.say(f"made {made}, {len(now_there) - made} were there")


@command.command("issue")
@click.argument("name")
@click.option(
    "--operator",
    is_flag=True,
    help="Issue an operator's certificate, which may manage the mesh, in place of a client's.",
)
@topology_option
@output_options
def issue_one(name: str, operator: bool, topology_path: Path | None, out: Output) -> None:
    """Issue a certificate: for a client, which logs in as user NAME by EXTERNAL, or for an operator.

    \b
    Example:
      amqpmesh certs issue alice && amqpmesh certs export alice > alice.pem
    """
    from mesh.certs import issue_client, issue_operator

    with told():
        make = issue_operator if operator else issue_client
        tell([make(folder(topology_path), name)], out)


@command.command("renew")
@click.argument("name", required=False)
@topology_option
@output_options
def renew_some(name: str | None, topology_path: Path | None, out: Output) -> None:
    """Renew the certificates called NAME, or all but the authority's. Nodes take theirs at their next start.

    At its start, `up` renews the certificates of nodes, and of this machine's operator, that end within 30 days.
    """
    from mesh.certs import renew

    with told():
        tell(renew(folder(topology_path), name), out)


@command.command("export")
@click.argument("name")
@click.option(
    "--format",
    "form",
    type=click.Choice(["pem", "p12"]),
    default="pem",
    show_default=True,
    help="Format of the file: PEM or PKCS#12.",
)
@click.option(
    "-o",
    "--output",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the export to FILE. [default: stdout]",
)
@click.option(
    "--password-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="For p12: file whose first line is the password. [default: AMQPMESH_PASSWORD, else asked for on a terminal]",
)
@topology_option
@output_options
def export_one(
    name: str, form: str, file: Path | None, password_file: Path | None, topology_path: Path | None, out: Output
) -> None:
    """Export certificate, key and authority of NAME in one file: PEM, or PKCS#12 as Java wants it. For NAME `ca`, the
    authority's certificate is exported alone, as PEM.

    \b
    Examples:
      amqpmesh certs export ca > ca.pem
      amqpmesh certs export alice --format p12 -o alice.p12
    """
    from mesh.certs import export_pem, export_pkcs12

    with told():
        certificate = find(name, folder(topology_path))
        if certificate.identity is None:
            if form == "p12":
                raise CommandFailed("the authority is exported without its key, as PEM: expected --format pem, got p12")
            content = certificate.path.read_bytes()
        elif form == "pem":
            content = export_pem(certificate)
        else:
            from mesh.terminal.passwords import read_password

            content = export_pkcs12(certificate, read_password("the key store", password_file, is_new=True))
    deliver(content, name, form, file, out)


def deliver(content: bytes, name: str, form: str, file: Path | None, out: Output) -> None:
    if file is not None:
        file.touch(mode=0o600)
        file.write_bytes(content)
    if out.is_json:
        import base64

        kept = {"file": str(file)} if file is not None else {"content_base64": base64.b64encode(content).decode()}
        out.document({"name": name, "format": form, **kept})
    elif file is None:
        sys.stdout.buffer.write(content)


def find(name: str, pki: Path) -> Certificate:
    from mesh.certs import list_certificates

    known = list_certificates(pki)
    for certificate in known:
        if name == (certificate.name if certificate.identity is not None else "ca"):
            return certificate
    if not known:
        raise CommandFailed(
            "this mesh has no certificates here yet",
            fix="`amqpmesh certs make`, or the first `up`, makes the authority, and a certificate for each node.",
        )
    names = ", ".join(sorted({"ca", *(one.name for one in known if one.identity is not None)}))
    raise CommandFailed(f"no certificate of '{name}': expected one of {names}")


def tell(certificates: Sequence[Certificate], out: Output) -> None:
    from datetime import UTC, datetime

    now = datetime.now(UTC)
    if out.is_json:
        out.document({"certificates": [to_map(one, now) for one in certificates]})
    elif not certificates:
        out.say("no certificates yet: `amqpmesh certs make`, or the first `up`, makes them")
    else:
        out.table(COLUMNS, [row(one, now) for one in certificates])


def row(one: Certificate, now: Any) -> list[object]:
    days = one.left(now).days
    return [one.role, one.name, one.not_after.date(), days, ",".join(one.hosts) or None, one.path]


def to_map(one: Certificate, now: Any) -> dict[str, Any]:
    return {
        "role": one.role,
        "name": one.name,
        "not_before": one.not_before.isoformat(),
        "not_after": one.not_after.isoformat(),
        "days_left": one.left(now).days,
        "hosts": list(one.hosts),
        "serial": str(one.serial),
        "fingerprint_sha256": one.fingerprint,
        "certificate": str(one.path),
        "key": str(one.key_path),
        "ca": str(one.ca_path),
    }


def folder(topology_path: Path | None) -> Path:
    from mesh.deploy.workdir import WorkDir
    from mesh.terminal.topology_file import load_topology

    return WorkDir(load_topology(topology_path).work_dir).pki


@contextmanager
def told() -> Iterator[None]:
    """Raise a CertsError of the block as CommandFailed with the same message, which the command line prints."""
    from mesh.certs import CertsError

    try:
        yield
    except CertsError as error:
        raise CommandFailed(str(error)) from None
