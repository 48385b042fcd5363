"""Waits for a change in another process that does not notify this process, by polling every 50 ms."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

POLL_S = 0.05


async def wait_until(holds: Callable[[], Awaitable[bool]]) -> None:
    while True:
        if await holds():
            return
        await asyncio.sleep(POLL_S)
