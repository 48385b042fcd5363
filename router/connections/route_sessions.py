"""Which session at the next node has the onward link of a link route? Links that share a session share its window.

Links of one session of a client share sessions on the whole way to the broker, 64 links in each. They share a window at
the client in any case, so a stall of one of them reaches no link beyond the client's own session. Links of different
clients, or of different sessions of a client, never share a session.
"""

from __future__ import annotations

from router.connections.peers import LINKS_PER_SESSION, SessionPool
from wire.errors import ConnectionFault
from wire.link import SEND_SETTLED, Link, OutgoingLink, Session


def session_of_route(pool: SessionPool, near: Link, priority: int) -> Session:
    """Return a session of ``pool`` for the link that carries on ``near``, the link of a route towards the client.

    Links share the session if their links towards the client are in one session, and their addresses have the same
    ``priority``. A consumer that `_keeps` its deliveries gets a session of its own while the session of ``near`` has
    few links. Raises ConnectionFault if the peer accepts no more sessions, and there is none to share.
    """
    if _keeps(near) and near.session.link_count <= LINKS_PER_SESSION and pool.endpoint.spare_session_count > 0:
        return pool.own()
    sessions = _onward(near.session, pool, priority)
    if sessions and _has_place(sessions[-1]):
        return sessions[-1]
    sessions[:] = filter(_is_usable, sessions)
    for session in sessions:
        if _has_place(session):
            return session
    try:
        sessions.append(pool.own())
    except ConnectionFault:
        if not sessions:
            raise
        return min(sessions, key=lambda session: session.link_count)
    return sessions[-1]


def _keeps(near: Link) -> bool:
    """True for a consumer whose deliveries wait here for new credit after it took its credit back.

    Pre-settled deliveries would be lost if they were given back; a browser gets each delivery only once.
    """
    is_consumer = isinstance(near, OutgoingLink)
    return is_consumer and (near.remote_settle_modes[0] == SEND_SETTLED or near.is_browser)


def _onward(near: Session, pool: SessionPool, priority: int) -> list[Session]:
    if near.onward is None:
        near.onward = {}
    found = near.onward.get((pool, priority))
    if found is None:
        for key in [key for key in near.onward if key[0].endpoint.is_freed]:
            del near.onward[key]
        found = near.onward[pool, priority] = []
    return found


def _has_place(session: Session) -> bool:
    return _is_usable(session) and session.link_count < LINKS_PER_SESSION


def _is_usable(session: Session) -> bool:
    return not session.is_over and not session.has_left
