"""Origin of an AMQP connection: the listener or connector that made the connection, and the demands on the peer."""

from __future__ import annotations

from dataclasses import dataclass

from wire.authentication import PeerTerms, Sasl
from wire.endpoint import Peer
from wire.node import ConnectorSpec, ListenerSpec
from wire.sasl import SaslAccepted, SaslClient, SaslServer
from wire.transport.tls import PeerIdentity, TlsAgreement


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a connection came from, and its terms: exactly one of ``listener`` and ``connector`` is set.

    ``is_mesh``: the peer counts as a node or operator of the mesh once it is accepted.
    ``is_refused``: the connection is over the limit of its listener, and lives only until its peer has read the error.
    """

    terms: PeerTerms
    listener: str | None = None
    connector: ConnectorSpec | None = None
    is_mesh: bool = False
    is_refused: bool = False

    @property
    def is_client(self) -> bool:
        return self.listener is not None and not self.is_mesh

    def peer(
        self,
        identity: PeerIdentity | None,
        accepted: SaslAccepted,
        remote_address: str,
        tls: TlsAgreement | None,
    ) -> Peer:
        """Return the peer of this connection, once SASL has accepted it; ``user`` is None for a peer that we dialed."""
        mesh = identity.mesh if identity is not None and self.is_mesh else None
        return Peer(
            user=accepted.user if self.listener is not None else None,
            is_mesh=self.is_mesh,
            mesh_name=mesh.name if mesh is not None else None,
            mesh_role=mesh.role if mesh is not None else None,
            remote_address=remote_address,
            listener=self.listener,
            mechanism=accepted.mechanism,
            tls=tls,
        )


def origin_at_listener(spec: ListenerSpec, *, is_refused: bool = False) -> Origin:
    def make_sasl(identity: PeerIdentity | None) -> Sasl:
        return SaslServer(spec.sasl, identity.user if identity is not None else None)

    def refuse(identity: PeerIdentity | None) -> str | None:
        if spec.mesh is None or spec.tls is None:
            return None
        mesh = identity.mesh if identity is not None else None
        if identity is None or mesh is None or mesh.mesh != spec.mesh or not identity.is_node_or_operator:
            return f"certificate of {_who(identity)}, expected a node or operator of mesh {spec.mesh!r}"
        return None

    is_mesh = spec.mesh is not None and not is_refused
    return Origin(PeerTerms(make_sasl, refuse), spec.name, None, is_mesh, is_refused)


def origin_at_connector(spec: ConnectorSpec) -> Origin:
    def make_sasl(identity: PeerIdentity | None) -> SaslClient | None:
        return SaslClient(spec.sasl) if spec.sasl is not None else None

    def refuse(identity: PeerIdentity | None) -> str | None:
        if spec.expected is None or spec.tls is None:
            return None
        found = identity.mesh if identity is not None else None
        if found == spec.expected:
            return None
        who = f"{found.role} {found.name!r} of mesh {found.mesh!r}" if found is not None else "no node of a mesh"
        wanted = spec.expected
        return f"the certificate is of {who}, expected {wanted.role} {wanted.name!r} of mesh {wanted.mesh!r}"

    return Origin(PeerTerms(make_sasl, refuse), None, spec, spec.is_mesh)


def _who(identity: PeerIdentity | None) -> str:
    if identity is None:
        return "nobody"
    if identity.mesh is None:
        return repr(identity.user)
    return f"{identity.mesh.role} {identity.mesh.name!r} of mesh {identity.mesh.mesh!r}"
