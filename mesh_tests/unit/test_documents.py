"""Links of the documents lead somewhere, and the files that they name are there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import click
import pytest

from mesh.commands.cli import cli

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    path
    for path in sorted(ROOT.rglob("*.md"))
    if not any(part.startswith(".") or part in ("build", "node_modules") for part in path.relative_to(ROOT).parts)
]
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
PACKAGES = ("addressing", "wire", "recording", "router", "broker", "linklogs", "mesh", "mesh_tests", "tools")
DEVELOPERS = [ROOT / "docs" / name for name in ("architecture.md", "where-to-change.md", "memory-safety.md")]
DEVELOPERS += sorted((ROOT / "docs" / "design").glob("*.md"))
NAMED_IN_CODE = re.compile(r"`([A-Z][A-Za-z]\w*(?:\.\w+)*|[a-z]+(?:_[a-z]+)+|\w+\(\))`")
"""A class, its member, a name of several words or a call: what a reader would look for in the sources."""
COMMAND = re.compile(r"(?:`|^\$ )amqpmesh ([a-z]+(?:-[a-z]+)*)(?: ([a-z]+)\b)?", re.MULTILINE)
FOLDERS = "addressing|wire|recording|router|broker|linklogs|mesh|mesh_tests|examples|docs|tools"
NAMED_FILE = re.compile(rf"`((?:{FOLDERS})/[\w./-]*)`")


def text_of(document: Path) -> str:
    """Without blocks of code, in which a bracket may be anything."""
    return re.sub(r"^```.*?^```", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(document: Path) -> set[str]:
    """As GitHub makes them from headings."""
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(text_of(document)))
    return {each.replace(" ", "-") for each in words}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    lost = []
    for name, anchor in LINK.findall(text_of(document)):
        target = (document.parent / name).resolve() if name else document
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            lost.append(f"{name}#{anchor}")
    assert lost == []


def is_of_today(document: Path) -> bool:
    """A changelog, a decision and a proof may name what is gone."""
    name = str(document.relative_to(ROOT))
    return name != "CHANGELOG.md" and not name.startswith(("docs/decisions/", "docs/proof/"))


CURRENT = [path for path in DOCUMENTS if is_of_today(path)]


@pytest.mark.parametrize("document", CURRENT, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_is_named_is_there(document: Path) -> None:
    named = NAMED_FILE.findall(document.read_text())
    assert [path for path in named if not (ROOT / path).exists() and not list(ROOT.glob(f"{path}.*"))] == []


@pytest.fixture(scope="module")
def words() -> frozenset[str]:
    """Return all words of the sources."""
    packages = [ROOT / name for name in PACKAGES]
    files = [path for package in packages for kind in ("*.py", "*.pyx", "*.pxd") for path in package.rglob(kind)]
    return frozenset(word for path in files for word in re.findall(r"\w+", path.read_text()))


@pytest.mark.parametrize("document", DEVELOPERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_name_of_the_code_is_there(document: Path, words: frozenset[str]) -> None:
    named = NAMED_IN_CODE.findall(text_of(document))
    assert [name for name in named if not words.issuperset(re.findall(r"\w+", name))] == []


@pytest.mark.parametrize("document", CURRENT, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_that_is_named_is_there(document: Path) -> None:
    unknown = []
    for name, child in COMMAND.findall(document.read_text()):
        command = cli.get_command(click.Context(cli), name)
        if command is None or (isinstance(command, click.Group) and child and child not in command.commands):
            unknown.append(f"{name} {child}")
    assert unknown == []


def test_the_architecture_is_a_short_page() -> None:
    assert len((ROOT / "docs" / "architecture.md").read_text().splitlines()) <= 200


def test_every_file_of_the_repository_that_is_a_document_is_checked() -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        assert {ROOT / name for name in listed.stdout.split()} <= {*DOCUMENTS}
