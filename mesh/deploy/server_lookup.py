"""Finds the server for a client command from its URL, options, environment, and the topology in the current folder."""

from __future__ import annotations

import ssl
from pathlib import Path

import click

from addressing.topology.model import Listener, Topology
from mesh.client.server import REACHABLE, Server
from mesh.client.url import DEFAULT_PORTS
from mesh.deploy.running_processes import change_note, living, option_for
from mesh.deploy.workdir import WorkDir
from mesh.terminal.connection_options import ConnectionRequest
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output
from mesh.terminal.passwords import find_password
from mesh.terminal.topology_file import TopologyInvalid, find_nearby, load_topology
from wire.sasl import SaslClientSettings
from wire.transport.tls import TlsSetupError, client_context

LOCAL_HOST = "localhost"


def find_server(request: ConnectionRequest) -> Server:
    url = request.url
    topology = find_topology_for(request)
    listener = None if topology is None else find_listener(topology, url.host, url.port, url.scheme)
    if url.host is None and listener is not None:
        host, port, is_tls = REACHABLE.get(listener.host, listener.host), listener.port, listener.tls is not None
    else:
        is_tls = url.is_tls
        host, port = url.host or LOCAL_HOST, url.port or DEFAULT_PORTS["amqps" if is_tls else "amqp"]
    tls = tls_context(request, issued_ca(topology, listener)) if is_tls else None
    sasl = login(request, host)
    note = note_on_login(sasl)
    if topology is None or listener is None or host not in local_hosts(listener):
        fix = None if url.host else fix_without_mesh(topology)
        return Server(host, port, tls, sasl, warning=note, fix=fix)
    fix = None if living(WorkDir(topology.work_dir)) else fix_not_running(request, topology)
    warning = "\n".join(filter(None, (change_note(topology, request.topology_path), note))) or None
    return Server(host, port, tls, sasl, warning=warning, fix=fix)


def find_topology_for(request: ConnectionRequest) -> Topology | None:
    """Return the topology that option ``-t`` names, else the topology that ``find_nearby`` finds, else None.

    Raises TopologyInvalid if the topology is invalid; a nearby invalid topology counts as none if the URL names a host.
    """
    if request.topology_path is not None:
        return load_topology(request.topology_path)
    try:
        return find_nearby()
    except TopologyInvalid:
        if request.url.host is None:
            raise
        # With a host in the URL, the topology would only say whether the server is a listener of the mesh: an invalid
        # topology is ignored.
        return None


def local_hosts(listener: Listener) -> tuple[str, ...]:
    """Return the hosts in a client's URL that stand for the local mesh's ``listener``.

    They are the listener's own host, localhost and the loopback addresses.
    """
    return (listener.host, REACHABLE.get(listener.host, listener.host), LOCAL_HOST, "127.0.0.1", "::1")


def fix_not_running(request: ConnectionRequest, topology: Topology) -> str:
    option = option_for(request.topology_path)
    return f"{topology.mesh} does not run here; start it with `amqpmesh up --detach{option}`."


def fix_without_mesh(topology: Topology | None) -> str:
    if topology is not None:
        return f"no router of {topology.mesh} has such a listener; name a server, such as //HOST:PORT/ADDRESS."
    return (
        "there is no topology here; name one with -t FILE and start it with "
        "`amqpmesh up --detach -t FILE`, or name a server, as in //HOST:PORT/ADDRESS."
    )


def tell_warning(server: Server, out: Output) -> None:
    if server.warning:
        out.say(server.warning)


def find_listener(topology: Topology, host: str | None, port: int | None, scheme: str | None) -> Listener | None:
    """Return the topology's first listener with TLS for amqps, without TLS for amqp, and of either kind for no scheme;
    None if there is none. If the URL has a host, the listener must have the URL's port, too.
    """
    for router in topology.routers.values():
        for listener in router.listeners:
            is_kind = scheme is None or (scheme == "amqps") == (listener.tls is not None)
            is_port = host is None or listener.port == (port or DEFAULT_PORTS[scheme or "amqp"])
            if is_kind and is_port:
                return listener
    return None


def issued_ca(topology: Topology | None, listener: Listener | None) -> Path | None:
    """Return the mesh's CA file if the mesh's CA issued the certificate of ``listener``, else None.

    None also stands for a CA file that is not on this machine.
    """
    if topology is None or listener is None or listener.tls is None or listener.tls.cert is not None:
        return None
    ca = WorkDir(topology.work_dir).pki / "ca.pem"
    return ca if ca.exists() else None


def tls_context(request: ConnectionRequest, mesh_ca: Path | None) -> ssl.SSLContext:
    try:
        return client_context(
            request.ca or mesh_ca, request.cert, request.key, verifies_certificate=not request.is_insecure
        )
    except TlsSetupError as error:
        raise CommandFailed(str(error)) from None


def login(request: ConnectionRequest, host: str) -> SaslClientSettings:
    user = request.user or request.url.user
    password = password_of(request, user)
    if password is not None and user is None:
        raise click.UsageError("expected a user for the password: give the user as -u NAME or in the URL")
    return SaslClientSettings(user, password, request.cert is not None, request.mechanisms, host)


def note_on_login(sasl: SaslClientSettings) -> str | None:
    if sasl.user is None or sasl.password is not None or sasl.has_certificate:
        return None
    return (
        f"note: {sasl.user} has no password here, so the client logs in as anonymous: give the "
        "password by --password-file, in AMQPMESH_PASSWORD or in the URL"
    )


def password_of(request: ConnectionRequest, user: str | None) -> str | None:
    """Return the password from the URL, the file, the environment or the terminal; None if there is no password.

    A password in the URL is used only for the URL's user. A user with a client certificate gets no password from the
    environment or the terminal.
    """
    if request.url.password is not None and request.user in (None, request.url.user):
        return request.url.password
    if user is None or (request.cert is not None and request.password_file is None):
        return None
    return find_password(user, request.password_file)
