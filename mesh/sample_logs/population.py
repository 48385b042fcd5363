"""Invents for generated link logs the producers and consumers of each address, their routers and their connections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from numpy.random import Generator

from addressing.book import AddressBook, AddressPolicy
from addressing.records import Level
from addressing.topology.model import Topology
from mesh.sample_logs.profile import Churn, Profile, TrafficProfile

WORDS = (
    "orders", "billing", "stock", "mail", "audit", "search", "quotes", "alerts", "metrics", "sessions", "devices",
    "routes", "scores", "uploads", "reports", "ledger", "tickets", "offers", "profiles", "images", "events", "limits",
)  # fmt: skip
_WILDCARD = re.compile(r"[*#]")


@dataclass(frozen=True, slots=True)
class AddressShare:
    """An address with traffic; ``share`` is its share of all messages, from 0 to 1."""

    name: str
    policy: AddressPolicy
    traffic: TrafficProfile
    share: float


@dataclass(frozen=True, slots=True, eq=False)
class SampleClient:
    """An invented client, which is either producer or consumer of one address.

    ``share``: the share of the address's messages that the client sends, or can receive. ``address``: place of the
    address.

    ``pace``: factor of the time that the consumer takes for a copy of a multicast message.
    """

    container: str
    user: str
    host: str
    router: str
    address: int
    is_producer: bool
    is_settled: bool
    share: float
    pace: float


@dataclass(frozen=True, slots=True, eq=False)
class SampleSession:
    """A connection of a client with its link, from ``from_us`` to ``to_us``; with ``is_lost``, the connection broke."""

    client: SampleClient
    from_us: int
    to_us: int
    is_lost: bool


def treatment(spoken: AddressShare) -> str:
    return spoken.policy.treatment


def addresses(topology: Topology, profile: Profile, random: Generator) -> list[AddressShare]:
    """Return the addresses with traffic and their shares of all messages; the order of popularity is random."""
    book = AddressBook(topology)
    found = [
        (policy, profile.addresses.get(pattern, TrafficProfile()))
        for pattern in profile.addresses or topology.addresses
        for policy in _policies(book, pattern, profile.addresses.get(pattern, TrafficProfile()).names)
    ]
    popularity = (1.0 + random.permutation(len(found))) ** -profile.zipf
    weights = popularity * [traffic.weight for _, traffic in found]
    shares = weights / weights.sum() if weights.sum() else weights
    return [AddressShare(each[0].address.text, *each, float(share)) for each, share in zip(found, shares, strict=True)]


def _policies(book: AddressBook, pattern: str, count: int) -> Iterator[AddressPolicy]:
    """Invent up to ``count`` addresses that match ``pattern``, and yield their policies.

    Left out are addresses with a more specific pattern in the topology, refused ones, and those at record level off.
    """
    is_pattern = _WILDCARD.search(pattern) is not None
    made = 0
    for i in range(10 * count if is_pattern else 1):
        word = WORDS[i % len(WORDS)] + (str(i // len(WORDS) + 1) if i >= len(WORDS) else "")
        policy = book.resolve(_WILDCARD.sub(word, pattern))
        if policy is not None and policy.pattern == pattern and _is_told(policy):
            yield policy
            made += 1
        if made == count:
            return


def _is_told(policy: AddressPolicy) -> bool:
    return not policy.kind.is_refused and policy.link_log is not Level.OFF


def clients(
    topology: Topology, profile: Profile, spoken: Sequence[AddressShare], random: Generator
) -> list[SampleClient]:
    users = tuple(topology.users) or tuple(f"user-{i + 1}" for i in range(profile.users))
    homes = tuple(name for name, router in topology.routers.items() if router.listeners) or tuple(topology.routers)
    found: list[SampleClient] = []
    for place, each in enumerate(spoken):
        for is_producer in (True, False):
            found += _of_address(place, each, is_producer, homes, users, profile, random)
    return _with_talkers(found, profile, random)


def _of_address(
    place: int,
    spoken: AddressShare,
    is_producer: bool,
    homes: tuple[str, ...],
    users: tuple[str, ...],
    profile: Profile,
    random: Generator,
) -> list[SampleClient]:
    traffic = spoken.traffic
    count = traffic.producers if is_producer else traffic.consumers
    at = (traffic.producers_at if is_producer else traffic.consumers_at) or homes
    # The shares of consumers follow a flatter distribution (exponent 0.3) than the shares of producers (``zipf``).
    shares = (1.0 + random.permutation(count)) ** -(profile.zipf if is_producer else 0.3)
    return [
        SampleClient(
            container=f"{'producer' if is_producer else 'consumer'}-{spoken.name}-{i + 1}",
            user=users[int(random.integers(len(users)))],
            host=f"10.{random.integers(256)}.{random.integers(256)}.{random.integers(1, 255)}",
            router=at[i % len(at)],
            address=place,
            is_producer=is_producer,
            is_settled=is_producer and bool(random.random() < traffic.settled),
            share=float(shares[i] / shares.sum()),
            pace=float(random.uniform(0.4, 1.0)),
        )
        for i in range(count)
    ]


def _with_talkers(found: list[SampleClient], profile: Profile, random: Generator) -> list[SampleClient]:
    producers = [i for i, client in enumerate(found) if client.is_producer]
    count = min(profile.talkers.count, len(producers))
    for place in random.choice(len(producers), count, replace=False) if count else ():
        client = found[producers[place]]
        fields = {name: getattr(client, name) for name in SampleClient.__slots__}
        found[producers[place]] = SampleClient(**{**fields, "share": client.share * profile.talkers.factor})
    return found


def sessions(
    client: SampleClient, up: Sequence[tuple[int, int]], begins_us: int, churn: Churn, random: Generator
) -> Iterator[SampleSession]:
    """Draw the connections of a client over time, within the spans ``up`` in which its router works.

    If the router is up at ``begins_us``, the first connection began before.
    """
    for first, (from_us, to_us) in enumerate(up):
        is_old = first == 0 and from_us == begins_us
        at_us = from_us - _drawn_us(random, churn.life) if is_old else from_us + _drawn_us(random, churn.gap)
        begun_us = at_us
        at_us = max(at_us, from_us)
        while at_us < to_us:
            end_us = at_us + _drawn_us(random, churn.life)
            is_lost = bool(random.random() < churn.lost)
            yield SampleSession(client, begun_us, min(end_us, to_us), is_lost if end_us < to_us else False)
            at_us = begun_us = end_us + _drawn_us(random, churn.gap)


def _drawn_us(random: Generator, mean_s: float) -> int:
    return 1 + int(random.exponential(mean_s) * 1e6)
