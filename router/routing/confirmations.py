"""Which routers have confirmed that the addresses that this router advertises are in effect there?

Sans-IO. A router that wants to know asks the others by CHECK, and each answers by SEEN. Both are sent only when
something waits for the answers, so a mesh without such waits has no more messages than before. A question that is not
answered is asked again after ``interval_s``: a CHECK or SEEN may be lost with a connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from router.routing.mobile import Version


class Confirmations:
    """The versions of this router's addresses that other routers confirmed, and the version to be confirmed.

    ``wanted`` is None while nothing waits for a confirmation. An answer counts for the life (``instance``) in which a
    router gave it.
    """

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self.wanted: Version | None = None
        self._asked: Version | None = None
        self._again_at: float | None = None
        self._confirmed: dict[str, tuple[int, Version]] = {}

    def want(self, version: Version) -> None:
        self.wanted = max(version, self.wanted or version)

    def on_seen(self, router: str, instance: int, version: Version) -> None:
        """Note the answer of ``router``, in its life ``instance``."""
        self._confirmed[router] = max((instance, version), self._confirmed.get(router, (0, (0, 0))))

    def forget(self, router: str) -> None:
        self._confirmed.pop(router, None)

    def lacking(self, routers: Iterable[str], instances: Mapping[str, int], version: Version) -> list[str]:
        """Return those of ``routers`` that have not confirmed ``version`` in their present lives, ``instances``."""
        nothing = 0, (0, 0)
        found = []
        for router in routers:
            instance, confirmed = self._confirmed.get(router, nothing)
            if instance != instances.get(router) or confirmed < version:
                found.append(router)
        return found

    def on_asked(self, version: Version, now: float) -> None:
        """Note that a CHECK for ``version`` was sent to all routers without a confirmation of ``version``."""
        self.wanted = self._asked = version
        self._again_at = now + self._interval_s

    def is_asked(self, version: Version) -> bool:
        """Say whether ``version`` was asked for already; `is_due` says when to ask again."""
        return self._asked is not None and self._asked >= version

    def is_due(self, now: float) -> bool:
        return self._again_at is not None and now >= self._again_at

    def rest(self) -> None:
        """Want no confirmation any more."""
        self.wanted = self._asked = self._again_at = None

    def next_deadline(self) -> float | None:
        return self._again_at
