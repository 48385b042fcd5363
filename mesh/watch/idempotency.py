"""The keys of changes: a second request with the key of an earlier change gets the answer of that change.

Keys are kept for a day, on disk, so that an observer that was killed makes no change twice either. A key is on disk
before the change begins. If the observer ended before the change did, the change may have been made or not: the same
key is refused then, and the operator has to look.

The file has a line of JSON for each begin and each end of a change; the file is written anew when most lines are old.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mesh.watch.whole_lines import write_whole

KEPT_S: Final = 24 * 3600.0
MAX_KEYS: Final = 10_000
"""Most keys kept of one operator."""
MAX_ANSWER_CHARS: Final = 16_384
"""A longer answer is kept without its details."""
_WASTED_LINES: Final = 5_000
"""So many lines more than needed, and the file is written anew."""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The answer to a change: the status of HTTP, and the object of JSON."""

    status: int
    content: Mapping[str, Any]


class KeyReused(Exception):
    """The key was given before, with another request."""


class KeysExhausted(Exception):
    """The operator has given MAX_KEYS keys within a day."""


@dataclass(slots=True)
class _KeyUse:
    digest: str
    at: float
    change: Mapping[str, Any]
    answer: KeptAnswer | None = None
    ended: asyncio.Future[KeptAnswer] | None = field(default=None, compare=False)
    """The future of the answer, while this observer makes the change."""


_KeyOfOperator = tuple[str, str]
"""The name of the operator, and the key."""


class WriteKeys:
    """The keys of one observer, in the file ``path``. ``now`` returns seconds of UTC.

    Always: a key is in the file before ``begin`` returns.
    """

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self._path, self._now = path, now
        self._file = ThreadPoolExecutor(1, "keys")
        """Writes the file: one line after the other, and not in the thread of the event loop."""
        self._uses: dict[_KeyOfOperator, _KeyUse] = {}
        self._counts: dict[str, int] = {}
        self._lines = 0
        self._load()

    def interrupted(self) -> list[Mapping[str, Any]]:
        """Return the ``change`` of each key that an earlier observer began a change for, without an answer."""
        return [use.change for use in self._uses.values() if use.answer is None and use.ended is None]

    def settle_interrupted(self, answer: KeptAnswer) -> None:
        """Answer the keys of interrupted changes by ``answer`` from now on. Raises OSError if it cannot be written."""
        for use in self._uses.values():
            if use.answer is None and use.ended is None:
                use.answer = answer
        self._forget_old()
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._replace(self._rows())

    async def begin(self, operator: str, key: str, digest: str, change: Mapping[str, Any]) -> KeptAnswer | None:
        """Begin the change that ``operator`` asks for with ``key``; return None if ``key`` is new.

        Else return the answer of the earlier change, once there is an answer. ``change``, the audit entry, is kept with
        the key, for the case that the observer ends before the change. Raises KeyReused, KeysExhausted, or OSError if
        the key cannot be written to the disk: then nothing was begun.
        """
        self._forget_old()
        use = self._uses.get((operator, key))
        if use is not None:
            if use.digest != digest:
                raise KeyReused
            if use.answer is not None:
                return use.answer
            assert use.ended is not None, "interrupted changes were settled at the start"
            return await asyncio.shield(use.ended)
        if self._counts.get(operator, 0) >= MAX_KEYS:
            raise KeysExhausted
        use = _KeyUse(digest, self._now(), change, ended=asyncio.get_running_loop().create_future())
        self._add((operator, key), use)
        try:
            await self._append(_begin_row(operator, key, use))
        except OSError as error:
            self._drop((operator, key))
            assert use.ended is not None
            use.ended.set_result(KeptAnswer(503, {"error": f"cannot write to {self._path}: {error.strerror}"}))
            raise
        return None

    async def end(self, operator: str, key: str, answer: KeptAnswer, *, is_kept: bool = True) -> None:
        """Keep the answer of a change; with ``is_kept`` false, forget the key: nothing was changed, so try again."""
        use = self._uses[operator, key]
        assert use.ended is not None
        if len(json.dumps(answer.content)) > MAX_ANSWER_CHARS:
            answer = KeptAnswer(answer.status, {"done": {}, "is_cut": True})
        if is_kept:
            use.answer = answer
        else:
            self._drop((operator, key))
        use.ended.set_result(answer)
        line: dict[str, Any] = {"who": operator, "key": key}
        await self._append(line | ({"status": answer.status, "answer": answer.content} if is_kept else {"drop": True}))

    # Memory
    def _add(self, name: _KeyOfOperator, use: _KeyUse) -> None:
        self._uses[name] = use
        self._counts[name[0]] = self._counts.get(name[0], 0) + 1

    def _drop(self, name: _KeyOfOperator) -> None:
        if self._uses.pop(name, None) is not None:
            self._counts[name[0]] -= 1

    def _forget_old(self) -> None:
        since = self._now() - KEPT_S
        while self._uses:
            name, use = next(iter(self._uses.items()))
            if use.at > since or (use.answer is None and use.ended is not None):
                return
            self._drop(name)

    # File
    def _load(self) -> None:
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            lines = []
        for line in lines:
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError, RecursionError):
                # The disk was full, or the observer was killed, while this line was written.
                continue

    def _take(self, row: dict[str, Any]) -> None:
        name = (str(row["who"]), str(row["key"]))
        if "digest" in row:
            self._drop(name)
            self._add(name, _KeyUse(str(row["digest"]), float(row["at"]), dict(row["what"])))
        elif "drop" in row:
            self._drop(name)
        elif name in self._uses:
            self._uses[name].answer = KeptAnswer(int(row["status"]), dict(row["answer"]))

    async def _append(self, row: dict[str, Any]) -> None:
        rows = None
        if self._lines > 2 * len(self._uses) + _WASTED_LINES:
            rows = self._rows()
        await asyncio.get_running_loop().run_in_executor(self._file, self._write, row, rows)

    def _write(self, row: dict[str, Any], rows: list[dict[str, Any]] | None) -> None:
        if rows is not None:
            self._replace(rows)
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # A line that was cut off, as by a full disk, ends here.
            write_whole(descriptor, b"\n" + json.dumps(row).encode() + b"\n", self._path)
        finally:
            os.close(descriptor)
        self._lines += 1

    def _rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for (operator, key), use in self._uses.items():
            found.append(_begin_row(operator, key, use))
            if use.answer is not None:
                found.append({"who": operator, "key": key, "status": use.answer.status, "answer": use.answer.content})
        return found

    def _replace(self, rows: list[dict[str, Any]]) -> None:
        unfinished = self._path.with_suffix(".new")
        unfinished.unlink(missing_ok=True)
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
            file.flush()
            os.fsync(descriptor)
        unfinished.rename(self._path)
        self._lines = len(rows)


def _begin_row(operator: str, key: str, use: _KeyUse) -> dict[str, Any]:
    return {"who": operator, "key": key, "digest": use.digest, "at": use.at, "what": use.change}
