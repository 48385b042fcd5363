"""Masks passwords in text from a topology file or command line, before the text goes to a terminal, a log or a report.

The text may be no valid file: an excerpt of a file with mistakes, or the lines of a change. So secrets are found by
their form in a line, not by parsing the file:

    password: ...           the value of a key with such a name, over several lines, too, and in a comment
    amqp://user:...@host    the password in a URL
    SCRAM-SHA-256$...       a salted password, wherever it stands
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MASK = "***"
Part = tuple[int, int]
"""Begin and end of a secret in its line."""

# Matches the names of keys whose values are secret, misspelt names included. Only whole keys match: `password.reset`
# and `bypass` are addresses.
_NAME = r"""(?<![\w./-])["']?(?:\w+[_-])?(?:pas+(?:w\w*|phrase)?|pwd)["']?"""
_BLOCK = re.compile(rf"(?P<indent>[\s#-]*){_NAME}\s*[:=]\s*(?P<value>.*?)\s*$", re.IGNORECASE)
_QUOTED = r"""(?:"(?:[^"\\]|\\.)*"?|'(?:[^']|'')*'?)"""
_FLOW = re.compile(rf"{_NAME}\s*[:=]\s*(?P<value>{_QUOTED}|[^\s,}}\]][^,}}\]]*)", re.IGNORECASE)
_URL = re.compile(r"""(?<![^\s"'\[{(,=])(?:[a-z0-9+.-]*:?//)?[^\s:"'@/]*:(?!//)(?P<value>[^\s"']+)@""", re.IGNORECASE)
_SALTED = re.compile(r"""(?P<value>SCRAM-SHA-\d+\$[^\s"',}\]]+)""", re.IGNORECASE)


def redact(text: str) -> str:
    """Return ``text``, lines of a topology file, with a mask in place of each secret: password or salted password."""
    lines = text.split("\n")
    return "\n".join(mask(line, parts) for line, parts in zip(lines, secret_parts(lines), strict=True))


def redact_urls(text: str) -> str:
    """Return ``text``, such as a command line, with a mask in place of each password of a URL."""
    return mask(text, _joined([found.span("value") for found in _URL.finditer(text)]))


def secret_parts(lines: Sequence[str], *, by_key: bool = True) -> list[list[Part]]:
    """Return for each line the places of secrets, in order, without overlap.

    With ``by_key`` the value of a key such as ``password`` is a secret. Without, only passwords in URLs and salted
    passwords are found: for lines where the author chose the keys, such as names of addresses.
    """
    if not by_key:
        return [_joined(_inline(line, _URL, _SALTED)) for line in lines]
    found: list[list[Part]] = []
    indent: int | None = None
    for line in lines:
        content = len(line) - len(line.lstrip())
        # A line with a larger indent than the key of a secret belongs to the key's value, so all of the line is masked.
        if indent is not None and line.strip() and content <= indent:
            indent = None
        if indent is not None:
            found.append([(content, len(line))] if line.strip() else [])
            continue
        block = _BLOCK.match(line)
        if block:
            indent = len(block["indent"])
        found.append(_joined([*([block.span("value")] if block else []), *_inline(line, _FLOW, _URL, _SALTED)]))
    return found


def mask(line: str, parts: Sequence[Part]) -> str:
    shown, end = "", 0
    for start, stop in parts:
        shown += line[end:start] + MASK
        end = stop
    return shown + line[end:]


def masked_column(column: int, parts: Sequence[Part]) -> int:
    """Return the column in the masked line of the character at ``column``; within a secret, the column of the mask."""
    moved = 0
    for start, stop in parts:
        if column < start:
            break
        if column < stop:
            return start + moved
        moved += len(MASK) - (stop - start)
    return column + moved


def without_quotations(message: str, secrets: Sequence[str]) -> str:
    """Return ``message`` with a mask for each secret, or word of a secret, that is in quotes or behind `got`."""
    words = {word for secret in secrets for word in (secret, *secret.split()) if word}
    words |= {word.strip("\"'*&!|> ") for word in words} - {""}
    for word in sorted(words, key=len, reverse=True):
        message = re.sub(rf"""(?<=["'`]){re.escape(word)}(?=["'`])|(?<=got ){re.escape(word)}\b""", MASK, message)
    return message


def _inline(line: str, *forms: re.Pattern[str]) -> list[Part]:
    return [found.span("value") for form in forms for found in form.finditer(line)]


def _joined(parts: Sequence[Part]) -> list[Part]:
    joined: list[Part] = []
    for start, stop in sorted(part for part in parts if part[0] < part[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined
