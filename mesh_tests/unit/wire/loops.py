"""Which event loop do the tests over sockets run on now? The fixture ``every_loop`` says it."""

import asyncio
from collections.abc import Awaitable, Callable

factory: Callable[[], asyncio.AbstractEventLoop] | None = None


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(30):
            await test()

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(within())
