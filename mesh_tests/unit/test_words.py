"""Texts for users and peers use the words that people search for, and open with their subject."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("addressing", "wire", "recording", "router", "broker", "linklogs", "mesh", "tools")
RULES = {
    "write 'X is not a valid Y'": re.compile(r"(?<!there )\b(?:is|are|was|were) no (?!longer\b)[a-z]", re.IGNORECASE),
    "write 'X already exists'": re.compile(r"\b(?:is|are) there already\b"),
    "write 'unknown X', or 'expected one of ...'": re.compile(r"\b(?:known are|names those there are)\b"),
    "open with the subject": re.compile(r"\A(?:Who|Whose|What|Of|That|Those) (?!.*\?\Z)", re.DOTALL),
}


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and text of every string literal of a source but docstrings; {} stands for a value."""
    source = path.read_text()
    if path.suffix == ".pyx":
        source = re.sub(r'"""(?s:.*?)"""', lambda found: "\n" * found[0].count("\n"), source)
        for found in re.finditer(r'"(?:[^"\\\n]|\\.)*"', source):
            yield source.count("\n", 0, found.start()) + 1, re.sub(r"\{[^{}]*\}", "{}", found[0][1:-1])
        return
    tree = ast.parse(source)
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            yield node.lineno, "".join(_text(part) for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def _text(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "{}"


def faults_of(text: str) -> list[str]:
    return [advice for advice, banned in RULES.items() if banned.search(text)]


def sources(package: str) -> list[Path]:
    return sorted(path for path in (ROOT / package).rglob("*") if path.suffix in (".py", ".pyx"))


@pytest.mark.parametrize("package", PACKAGES)
def test_texts_use_the_words_that_people_search_for(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text!r}: {advice}"
        for path in sources(package)
        for line, text in literals(path)
        for advice in faults_of(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "is_fine"),
    [
        ("{} is no name: expected letters", False),
        ("the port is no number", False),
        ("{} is not a valid name: expected letters", True),
        ("there is no store in {}", True),
        ("{} is no longer a member", True),
        ("queue {} is there already", False),
        ("Of this broker only.", False),
        ("What is lost was noticed at once.", False),
        ("What shall break?", True),
    ],
)
def test_the_rules_find_what_they_are_for(text: str, is_fine: bool) -> None:
    assert (not faults_of(text)) == is_fine


def test_literals_of_compiled_sources_are_seen(tmp_path: Path) -> None:
    for name in ("a.py", "a.pyx"):
        source = tmp_path / name
        source.write_text('"""X is no docstring."""\n\n\ndef f(x):\n    raise ValueError(f"{x} is no name")\n')
        assert list(literals(source)) == [(5, "{} is no name")]
