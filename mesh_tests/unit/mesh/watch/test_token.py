"""The observer's token: who can read it, and what a broken file of it leads to."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from mesh.deploy.workdir import WorkDir
from mesh.watch.observer import LEAST_TOKEN_CHARS, token, token_file


@pytest.fixture
def workdir(tmp_path: Path) -> WorkDir:
    made = WorkDir(tmp_path)
    made.make()
    return made


def test_a_token_is_made_once_and_only_its_owner_can_read_it(workdir: WorkDir) -> None:
    made = token(workdir)
    assert len(made) >= LEAST_TOKEN_CHARS
    assert token(workdir) == made
    assert stat.S_IMODE(token_file(workdir).stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "\n", "short\n"])
def test_a_file_without_a_whole_token_is_made_anew(workdir: WorkDir, content: str) -> None:
    token_file(workdir).write_text(content)
    token_file(workdir).chmod(0o600)
    made = token(workdir)
    assert len(made) >= LEAST_TOKEN_CHARS
    assert token(workdir) == made


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_token_that_others_could_read_or_write_is_made_anew(workdir: WorkDir, mode: int) -> None:
    before = token(workdir)
    token_file(workdir).chmod(mode)
    assert token(workdir) != before
    assert stat.S_IMODE(token_file(workdir).stat().st_mode) == 0o600


def test_a_token_that_was_being_written_when_the_observer_was_killed_is_no_token(workdir: WorkDir) -> None:
    token_file(workdir).with_suffix(".new").write_text("half")
    assert len(token(workdir)) >= LEAST_TOKEN_CHARS
    assert not token_file(workdir).with_suffix(".new").exists()
