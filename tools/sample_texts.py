"""Draws texts of the sources at random, for a reader who has not seen the project: `tools/sample_texts.py SEED`.

Prints a JSON line for each text: number, kind (docstring, comment, error, event), text and, with --places, file and
line. The reader restates each text without its place; a judge compares the restatements with the code.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import random
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("addressing", "wire", "recording", "router", "broker", "linklogs", "mesh")
FEWEST_WORDS = 4
SHARES = {"docstring": 45, "comment": 20, "error": 25, "event": 10}
PYX_COMMENT = re.compile(r"^\s*#\s?(.*)$")
PYX_DOCSTRING = re.compile(r'"""(.*?)"""', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Text:
    kind: str
    text: str
    file: str
    line: int


def texts() -> Iterator[Text]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py*")):
            file = str(path.relative_to(ROOT))
            if path.suffix == ".py":
                yield from _of_python(file, path.read_text())
            elif path.suffix == ".pyx":
                yield from _of_cython(file, path.read_text())


def _of_python(file: str, source: str) -> Iterator[Text]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                is_event = isinstance(node, ast.ClassDef) and any(
                    "LogEvent" in ast.unparse(base) for base in node.bases
                )
                name = f"{node.name}: " if is_event and isinstance(node, ast.ClassDef) else ""
                line = 1 if isinstance(node, ast.Module) else node.lineno
                yield Text("event" if is_event else "docstring", name + docstring, file, line)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            said = [_literal(each) for each in node.exc.args]
            text = " ".join(each for each in said if each)
            if text:
                yield Text("error", text, file, node.lineno)
    yield from _comments(file, source)


def _literal(node: ast.expr) -> str:
    """Return the text of a string literal; an expression in an f-string is shown in braces."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
            for part in node.values
            if isinstance(part, ast.Constant | ast.FormattedValue)
        )
    return ""


def _comments(file: str, source: str) -> Iterator[Text]:
    """Yield the comments of a Python source; comments on successive lines are one text."""
    lines: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if token.start[0] != last + 1 and lines:
            yield Text("comment", " ".join(lines), file, last)
            lines = []
        lines.append(token.string.lstrip("# "))
        last = token.start[0]
    if lines:
        yield Text("comment", " ".join(lines), file, last)


def _of_cython(file: str, source: str) -> Iterator[Text]:
    for found in PYX_DOCSTRING.finditer(source):
        if source[: found.start()].rstrip().endswith("from *:"):
            continue  # C code in a string, no text
        yield Text("docstring", found[1], file, source[: found.start()].count("\n") + 1)
    lines: list[str] = []
    # A docstring keeps its number of lines, so that comments keep their line numbers.
    code = PYX_DOCSTRING.sub(lambda found: "\n" * found[0].count("\n"), source)
    for number, line in enumerate([*code.splitlines(), ""], 1):
        if found := PYX_COMMENT.match(line):
            lines.append(found[1])
        elif lines:
            yield Text("comment", " ".join(lines), file, number - len(lines))
            lines = []


def drawn(seed: int) -> list[Text]:
    """Draw the number of texts that ``SHARES`` gives for each kind, each of at least four words, and shuffle them."""
    chance = random.Random(seed)
    worth = [each for each in texts() if len(each.text.split()) >= FEWEST_WORDS and "noqa" not in each.text]
    chosen = [
        text
        for kind, count in SHARES.items()
        for text in chance.sample([each for each in worth if each.kind == kind], count)
    ]
    chance.shuffle(chosen)
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int)
    parser.add_argument("--places", action="store_true", help="Print file and line, too.")
    options = parser.parse_args()
    for number, each in enumerate(drawn(options.seed), 1):
        shown: dict[str, object] = {"number": number, "kind": each.kind, "text": " ".join(each.text.split())}
        if options.places:
            shown |= {"file": each.file, "line": each.line}
        sys.stdout.write(f"{json.dumps(shown, ensure_ascii=False)}\n")


if __name__ == "__main__":
    main()
