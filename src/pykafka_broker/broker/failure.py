"""The failure of a broker: the first error after which it cannot go on."""

from __future__ import annotations

import asyncio


class Failure:
    """The error; it can be set once. Made inside the event loop."""

    def __init__(self) -> None:
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def set(self, error: Exception) -> None:
        """The broker cannot go on; later errors are ignored as consequences of the first."""
        if not self._future.done():
            self._future.set_exception(error)
            self._future.exception()  # marks it as retrieved, even if `wait` is not running

    def raise_if_happened(self) -> None:
        """Raise the error, if there is one."""
        if self._future.done():
            self._future.result()

    async def wait(self) -> None:
        """Never return; raise the error when the broker cannot go on."""
        await asyncio.shield(self._future)
