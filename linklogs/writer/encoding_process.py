"""Runs the helper process of a writer of link logs that makes Parquet of spools; see ``HelperEncoder``."""

from __future__ import annotations

import json
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any


class WithoutPandas(MetaPathFinder):
    """A finder of modules that keeps pyarrow from importing pandas in the helper process.

    If pandas is installed, pyarrow imports pandas to recognize values of pandas; the helper has no such values. Without
    pandas, the helper starts in half the time and takes 50 MB less memory.
    """

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Raise ModuleNotFoundError for pandas; return None, for the next finder, for any other module."""
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden here: the writer of link logs works without it", name=fullname)


def main() -> None:
    """Answer the questions on stdin until nobody can ask any more."""
    sys.meta_path.insert(0, WithoutPandas())
    from linklogs.writer.redaction import Redactor

    first = sys.stdin.buffer.readline()
    if not first:
        return
    settings = json.loads(first)
    key = settings["redact_key"]
    redactor = Redactor(bytes.fromhex(key) if key is not None else None, tuple(settings["redact_columns"]))
    for line in sys.stdin.buffer:
        answer, data = answer_of(Path(json.loads(line)["spool"]), Path(settings["out"]), redactor)
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def answer_of(path: Path, out: Path, redactor: Any) -> tuple[dict[str, Any], Any]:
    """Return the answer to the question for the spool at ``path``, and the content of the file."""
    from linklogs.writer.encoded_file import encoded_file
    from linklogs.writer.spool import SpoolDamaged

    try:
        found = encoded_file(path, out, redactor)
    except SpoolDamaged as error:
        return {"damaged": str(error)}, b""
    except OSError as error:
        return {"failed": [error.errno, error.strerror, error.filename and str(error.filename)]}, b""
    if found is None:
        return {"target": None}, b""
    return {"target": str(found.target), "size_bytes": len(memoryview(found.data))}, found.data


if __name__ == "__main__":
    main()
