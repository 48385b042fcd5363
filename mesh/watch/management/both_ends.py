"""Makes the change that an UPDATE asks for: at a node or, of a cost, at the routers at both ends, or at neither.

The router at the other end may be on another host: the observer there sets the cost, and tells its own audit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from mesh.watch.management.protocol import ManagementError, Status
from mesh.watch.write_request import WriteRefused

if TYPE_CHECKING:
    from addressing.operator_rights import Operator
    from mesh.watch.management.updates import NodeChange

OTHER_END_S: Final = 4.0
"""How long another host may take. The original qdmanage waits 5 s for an answer."""
_SAME: Final = frozenset({Status.BAD_REQUEST, Status.FORBIDDEN, Status.NOT_FOUND})
"""The statuses of another host that the requester gets unchanged; any other status becomes UNAVAILABLE."""

Ask = Callable[[str, str, Mapping[str, Any]], Awaitable[Any]]
SetElsewhere = Callable[["Operator", str, str, int], Awaitable[int]]


class BothEnds:
    """``ask`` sends a request to a node of this host, which ``runs_here`` tells, and raises ManagementError.

    ``set_elsewhere`` sets the cost at a router of another host to a neighbor, for an operator, and raises WriteRefused.
    """

    def __init__(self, ask: Ask, runs_here: Callable[[str], bool], set_elsewhere: SetElsewhere) -> None:
        self._ask, self._runs_here, self._set_elsewhere = ask, runs_here, set_elsewhere
        # Of two changes of one cost at the same time, one could take back at one end what the other has set.
        self._turn = asyncio.Lock()

    async def make(self, node: str, change: NodeChange, operator: Operator) -> None:
        """Make a change. Raises ManagementError if it was not made, or if it is unknown whether it was."""
        if not change.other:
            await self._ask(node, change.op, change.arguments)
            return
        async with self._turn:
            await self._make_both(node, change, operator)

    async def _make_both(self, node: str, change: NodeChange, operator: Operator) -> None:
        before = await self._ask(node, change.op, change.arguments)
        try:
            if self._runs_here(change.other):
                await self._ask(change.other, change.op, change.other_arguments)
            else:
                await self._tell_other_host(node, change, operator)
        except ManagementError:
            await self._ask(node, change.op, {**change.arguments, "cost": before})
            raise

    async def _tell_other_host(self, node: str, change: NodeChange, operator: Operator) -> None:
        try:
            async with asyncio.timeout(OTHER_END_S):
                await self._set_elsewhere(operator, change.other, node, change.other_arguments["cost"])
        except TimeoutError:
            raise self._unknown(node, change.other) from None
        except WriteRefused as refused:
            if refused.is_uncertain:
                raise self._unknown(node, change.other) from None
            raise ManagementError(
                Status(refused.status) if refused.status in _SAME else Status.UNAVAILABLE,
                f"{change.other} did not take the cost, and that at {node} is as before: {refused.sentence}",
            ) from None

    def _unknown(self, node: str, other: str) -> ManagementError:
        return ManagementError(
            Status.TIMEOUT,
            f"the cost at {node} is as before, and it is unknown whether that at {other}, on another host, was set: "
            "its observer has not answered: look at the cost, and set it again",
        )
