"""Links of the documents lead somewhere, and the files that they name are there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    path
    for path in sorted(ROOT.rglob("*.md"))
    if not any(part.startswith(".") or part in ("build", "node_modules") for part in path.relative_to(ROOT).parts)
]
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
NAMED_FILE = re.compile(r"`((?:addressing|wire|recording|router|broker|linklogs|mesh|mesh_tests|docs|tools)/[\w./-]*)`")


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


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/memory-safety.md"])
def test_every_file_that_is_named_is_there(name: str) -> None:
    named = NAMED_FILE.findall((ROOT / name).read_text())
    assert [path for path in named if not (ROOT / path).exists() and not list(ROOT.glob(f"{path}.*"))] == []


def test_every_file_of_the_repository_that_is_a_document_is_checked() -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        assert {ROOT / name for name in listed.stdout.split()} <= {*DOCUMENTS}
