"""Texts that a client can choose as a name or write into a message, and that break what does not quote them."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

MARKS: Final = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "<!--",
    "]]>",
    "javascript:alert(1)",
    "&lt;b&gt;&#0;",
    "\"'`\\",
    "{{7*7}}${7*7}%s%n{0}",
    "a\0b",
    "\x1b]0;owned\x07\x1b[31m\x9b2J",
    "a\r\nset-cookie: owned=1\r\n\r\n",
    "\n\nevent: all\ndata: {}\n\n",
    '"} 1\nowned{x="',
    "\u202ertl\u2066\u200b\ufeff",
    "\u2028\u2029\x85",
    "../../etc/passwd%2e%2e%2f",
    "a\ud800b\udfff",
    "\U0001f600\u0301",
    " ",
    "#",
    "-rf",
    "x" * 4_096,
)


def hostile_texts() -> st.SearchStrategy[str]:
    """Generates single marks, marks within other text, and any text."""
    mark = st.sampled_from(MARKS)
    return st.one_of(
        mark, st.tuples(st.text(max_size=20), mark, st.text(max_size=20)).map("".join), st.text(min_size=1)
    )
