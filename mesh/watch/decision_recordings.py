"""Recordings of decisions at the routers of this host, for an operator: to begin one, and to read what was decided."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from addressing.address import normalize
from addressing.book import SpaceBooks
from mesh.deploy.control import RequestRefused
from mesh.watch.decision_rows import decision_row
from mesh.watch.declared_addresses import decided_sentences, declared_sentences
from mesh.watch.mesh_requests import MeshRequests, refused_by
from mesh.watch.query import QueryError
from mesh.watch.write_request import WriteRefused
from mesh.watch.write_targets import runs_here

if TYPE_CHECKING:
    from addressing.book import AddressPolicy
    from addressing.operator_rights import Operator
    from addressing.topology.model import Topology
    from mesh.watch.host_model import HostModel

MAX_PAGE: Final = 100
DEFAULT_PAGE: Final = 50
_SHOWN_CHARS: Final = 80
_MAX_NUMBER: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class RecordedAddress:
    """An available address. ``pattern`` and ``treatment`` are those of the entity; ``policy`` has the rest."""

    id: str
    pattern: str | None
    treatment: str
    policy: AddressPolicy

    @property
    def address(self) -> str:
        return self.id


class DecisionRecordings:
    """Asks the routers of ``topology`` that run on the host of ``host``."""

    def __init__(self, topology: Topology, host: HostModel, requests: MeshRequests) -> None:
        self._topology, self._host, self._requests = topology, host, requests
        self._book = SpaceBooks(topology).of("")

    def address(self, operator: Operator, text: str) -> RecordedAddress:
        """Return the address. Raises WriteRefused, 404, if it is not available, or the operator may not view it."""
        name = normalize(text)
        policy = self._book.resolve(name)
        if policy is None or policy.kind.is_refused or not operator.may_view(name):
            raise WriteRefused(404, f"there is no address {text[:_SHOWN_CHARS]!r} now")
        return RecordedAddress(name, policy.pattern or None, policy.treatment, policy)

    def sentences(self, found: RecordedAddress) -> list[str]:
        """Return sentences about the declaration of the address, and about the routers that decide about deliveries."""
        declared = declared_sentences(self._topology, found.id, found.policy)
        return [*declared, *decided_sentences(self._topology, found.id, found.policy)]

    @property
    def routers(self) -> list[str]:
        """The routers that run on this host."""
        return [name for name in self._topology.routers if runs_here(self._host, name)]

    async def begin(self, address: str, seconds: int) -> tuple[int, list[WriteRefused]]:
        """Have each router here record the address; return how many do, and why others do not."""
        told = await asyncio.gather(*(self._begin(name, address, seconds) for name in self.routers))
        refused = [each for each in told if each is not None]
        return len(told) - len(refused), refused

    async def _begin(self, router: str, address: str, seconds: int) -> WriteRefused | None:
        try:
            with refused_by(router, is_begun=False):
                await self._requests.ask_node(router, "record_decisions", address=address, seconds=seconds)
        except WriteRefused as refused:
            return refused
        return None

    async def read(self, found: RecordedAddress, operator: Operator, after: Mapping[str, int]) -> dict[str, Any]:
        """Return the next decisions of each router here, behind the numbers ``after``.

        `items` are rows, `next` numbers by router to go on from, `lost` counts those that were overwritten, and
        `seconds_left` is what is left of the longest recording. Raises WriteRefused, 403, if the address shares
        circuits with others that the operator may not view.
        """
        shared = found.policy.shared
        if shared is not None and not operator.may_view(shared.name):
            raise WriteRefused(
                403, f"{found.id} shares circuits with other addresses of {shared.name}: to see decisions, you need "
                f"the right `view` of {shared.name!r}"
            )  # fmt: skip
        answers = await asyncio.gather(*(self._read(name, found.id, after.get(name, 0)) for name in self.routers))
        told = {name: answer for name, answer in zip(self.routers, answers, strict=True) if isinstance(answer, Mapping)}
        return {
            "items": [
                decision_row(name, row, answer["links"]) for name, answer in told.items() for row in answer["decisions"]
            ],
            "next": {name: answer["next"] for name, answer in told.items()},
            "lost": sum(answer["lost"] for answer in told.values()),
            "seconds_left": max((answer["seconds_left"] for answer in told.values()), default=0.0),
            "silent": [answer for answer in answers if isinstance(answer, str)],
        }

    async def _read(self, router: str, address: str, after: int) -> Mapping[str, Any] | str | None:
        """Return the answer of the router; None if it does not record the address, a sentence if it does not answer."""
        try:
            with refused_by(router, is_begun=False):
                try:
                    found: Mapping[str, Any] = await self._requests.ask_node(
                        router, "decisions", address=address, after=after
                    )
                except RequestRefused:
                    return None
        except WriteRefused as refused:
            return refused.sentence
        return found


def page_of(parts: Sequence[Mapping[str, Any]], after: Mapping[str, int], limit: int) -> dict[str, Any]:
    """Return the page of the first ``limit`` rows of the answers of hosts, the oldest first."""
    rows = sorted((row for part in parts for row in part["items"]), key=lambda row: (row["at"], row["id"]))
    numbers = dict(after)
    for part in parts:
        numbers.update(part["next"])
    for row in reversed(rows[limit:]):
        numbers[row["node"]] = row["number"] - 1
    return {
        "items": rows[:limit],
        "next": ",".join(f"{name}:{number}" for name, number in sorted(numbers.items()) if number),
        "lost": sum(part["lost"] for part in parts),
        "seconds_left": max((part["seconds_left"] for part in parts), default=0.0),
    }


def parse_cursor(text: str | None) -> dict[str, int]:
    """Return the numbers by router of the `next` of a page. Raises QueryError."""
    found: dict[str, int] = {}
    for each in (text or "").split(","):
        name, _, number = each.rpartition(":")
        if not each and not text:
            break
        if not name or not (number.isascii() and number.isdecimal()) or len(number) > 10 or int(number) > _MAX_NUMBER:
            raise QueryError("after", f"expected the `next` of the page before as after, got {each[:_SHOWN_CHARS]!r}")
        found[name] = int(number)
    return found
