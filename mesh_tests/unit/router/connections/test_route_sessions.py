"""Which links of link routes share a session at the next node?"""

from __future__ import annotations

from typing import Any

import pytest

from mesh_tests.unit.wire.pipes import Pipe
from router.connections.peers import LINKS_PER_SESSION, SessionPool
from router.connections.route_sessions import session_of_route
from wire.errors import ConnectionFault
from wire.events import LinkAttached
from wire.link import RECEIVE_FIRST, SEND_SETTLED, Link, Session
from wire.terminus import DistributionMode, source

PRIORITY = 4


class Client:
    """A client's connection; ``attach`` returns the router's ends of new links in a session of the client."""

    def __init__(self) -> None:
        self._pipe = Pipe()
        self._count = 0

    def begin(self) -> Session:
        return self._pipe.a.begin()

    def attach(self, session: Session, count: int = 1, *, settled: bool = False, browses: bool = False) -> list[Link]:
        for _ in range(count):
            self._count += 1
            link = session.receiver(f"link {self._count}")
            mode = DistributionMode.COPY if browses else DistributionMode.MOVE
            link.set_source(source("q", distribution_mode=mode))
            if settled:
                link.set_settle_modes(SEND_SETTLED, RECEIVE_FIRST)
            link.open()
        self._pipe.run()
        found: list[LinkAttached] = self._pipe.take(self._pipe.b, LinkAttached)
        return [each.link for each in found]


class Onward:
    """The connection to the next node, which takes ``max_sessions``."""

    def __init__(self, max_sessions: int = 256) -> None:
        self.pipe = Pipe(max_sessions=max_sessions)
        self.pool = SessionPool(self.pipe.a)
        self._count = 0

    def carry_on(self, near: Link, priority: int = PRIORITY) -> Link:
        session = session_of_route(self.pool, near, priority)
        self._count += 1
        link = session.receiver(f"onward {self._count}")
        link.open()
        return link

    def accept(self) -> None:
        self.pipe.run()
        for each in self.pipe.take(self.pipe.b, LinkAttached):
            each.link.accept_as_proposed()
        self.pipe.run()


def sessions(links: list[Link]) -> list[Session]:
    return list(dict.fromkeys(link.session for link in links))


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def onward() -> Onward:
    return Onward()


def test_links_of_one_session_share_sessions_of_64(client: Client, onward: Onward):
    links = [onward.carry_on(near) for near in client.attach(client.begin(), 3 * LINKS_PER_SESSION)]
    assert [session.link_count for session in sessions(links)] == [LINKS_PER_SESSION] * 3


def test_links_of_two_sessions_two_clients_or_two_priorities_share_none(client: Client, onward: Onward):
    session = client.begin()
    other = Client()
    nears = client.attach(session) + client.attach(client.begin()) + other.attach(other.begin())
    links = [onward.carry_on(near) for near in nears] + [onward.carry_on(nears[0], PRIORITY + 1)]
    assert len(sessions(links)) == 4
    assert onward.carry_on(client.attach(session)[0]).session is links[0].session


def test_a_link_takes_the_place_of_one_that_ended_before_a_session_is_begun(client: Client, onward: Onward):
    near = client.begin()
    links = [onward.carry_on(each) for each in client.attach(near, 2 * LINKS_PER_SESSION)]
    onward.accept()
    links[3].close()
    onward.pipe.run()
    for each in onward.pipe.b.links:
        if each.name == links[3].name:
            each.close()
    onward.pipe.run()
    assert links[3].is_gone
    assert onward.carry_on(client.attach(near)[0]).session is links[0].session


def test_a_session_without_links_ends_and_is_not_used_again(client: Client, onward: Onward):
    near = client.attach(client.begin(), 2)
    first = session_of_route(onward.pool, near[0], PRIORITY)
    link = first.receiver("only")
    onward.pipe.a.forget(link)
    assert first.has_left
    assert session_of_route(onward.pool, near[1], PRIORITY) is not first


@pytest.mark.parametrize("kind", [{"settled": True}, {"browses": True}], ids=["pre-settled", "browser"])
def test_who_keeps_deliveries_has_a_session_of_its_own_unless_there_are_many(
    client: Client, onward: Onward, kind: dict[str, Any]
):
    session = client.begin()
    few = [onward.carry_on(client.attach(session, **kind)[0]) for _ in range(LINKS_PER_SESSION)]
    assert len(sessions(few)) == LINKS_PER_SESSION
    more = [onward.carry_on(client.attach(session, **kind)[0]) for _ in range(LINKS_PER_SESSION)]
    assert len(sessions(more)) == 1


def test_without_a_session_to_spare_links_share_even_so_and_the_first_is_refused(client: Client):
    onward = Onward(max_sessions=2)
    near = client.begin()
    links = [onward.carry_on(each) for each in client.attach(near, 5 * LINKS_PER_SESSION)]
    links += [onward.carry_on(each) for each in client.attach(near, 3, settled=True)]
    first, second = sessions(links)
    assert abs(first.link_count - second.link_count) <= 1
    with pytest.raises(ConnectionFault):
        onward.carry_on(client.attach(client.begin())[0])


def test_connections_that_are_gone_are_forgotten(client: Client, onward: Onward):
    near = client.attach(client.begin())[0]
    for _ in range(3):
        lost = Onward()
        lost.carry_on(near)
        lost.pipe.a.free()
    onward.carry_on(near)
    assert near.session.onward is not None
    assert [pool for pool, _ in near.session.onward] == [onward.pool]
