"""Changes to a topology file that keep the author's comments, order and quotes."""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from addressing.topology.loader import load_topology, parse_topology

_WIDER_THAN_ANY_LINE = 1_000_000


def set_user(
    path: str | os.PathLike[str],
    name: str,
    secret: str | None,
    send: Sequence[str] | None = None,
    receive: Sequence[str] | None = None,
    **rights: Sequence[str],
) -> bool:
    """Add the user ``name`` to the topology file, or change the user; return whether the user is new.

    A ``secret``, ``send`` or ``receive`` of None leaves the user's value as it is, as does a right that is not given:
    ``rights`` has lists of patterns by the names of `addressing.operator_rights.Right`. The file is replaced as a whole
    or not at all, and only by a valid file: raise TopologyErrors if the file is invalid now, or would be afterwards.
    """
    file = Path(path).resolve()
    is_new = name not in load_topology(path).users
    text = file.read_text(encoding="utf-8-sig")
    changes = {"password": secret, "send": send, "receive": receive, **rights}
    changed = _with_user(text, name, {key: value for key, value in changes.items() if value is not None})
    parse_topology(changed, file=str(path))
    replace_file(file, changed)
    return is_new


def _with_user(text: str, name: str, changes: dict[str, str | Sequence[str]]) -> str:
    yaml = _round_trip(text)
    root: CommentedMap = yaml.load(text)
    users = _mapping_at(root, "users")
    user = _mapping_at(users, name)
    for key, value in changes.items():
        user[key] = DoubleQuotedScalarString(value) if isinstance(value, str) else _list(value)
    out = io.StringIO()
    yaml.dump(root, out)
    return out.getvalue()


def _mapping_at(parent: CommentedMap, key: str) -> CommentedMap:
    """Return the mapping under ``key`` of ``parent``, where a missing mapping is first made, empty."""
    if parent.get(key) is None:
        parent[key] = CommentedMap()
    found: CommentedMap = parent[key]
    return found


def _list(items: Sequence[str]) -> CommentedSeq:
    # Each item is in quotes, because # and * at the beginning of a word have another meaning in YAML.
    found = CommentedSeq(DoubleQuotedScalarString(item) for item in items)
    found.fa.set_flow_style()
    return found


def _round_trip(text: str) -> Any:
    """Return a YAML reader and writer that keeps comments and quotes, and indents as ``text`` does."""
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = _WIDER_THAN_ANY_LINE
    offset = _dash_offset(text)
    mapping = _mapping_indent(text)
    yaml.indent(mapping=mapping, sequence=offset + 2, offset=offset)
    return yaml


def _mapping_indent(text: str) -> int:
    found = re.search(r"^( +)[^\s#-]", text, re.MULTILINE)
    return len(found[1]) if found else 2


def _dash_offset(text: str) -> int:
    """Return by how many columns the first list's dash stands to the right of the list's key; 2 without a list."""
    found = re.search(r"^( *)[^\s#-][^\n]*:[^\S\n]*(?:#[^\n]*)?\n(?:[^\S\n]*(?:#[^\n]*)?\n)*( *)- ", text, re.MULTILINE)
    return max(0, len(found[2]) - len(found[1])) if found else 2


def replace_file(file: Path, text: str) -> None:
    """Put ``text`` in place of ``file`` in one step: a reader or a crash finds the old text or the new text.

    Raises OSError, which names ``file``.
    """
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, file.stat().st_mode & 0o7777)
        os.replace(name, file)
    except OSError as error:
        os.unlink(name)
        raise OSError(error.errno, error.strerror, str(file)) from None
    except BaseException:
        os.unlink(name)
        raise
