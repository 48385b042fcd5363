"""A short look at the heaps of the pages in each run of the tests; `make soak` leads one of twelve minutes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mesh_tests.browser import page_heaps
from mesh_tests.browser.conftest import CHROMIUM
from mesh_tests.installed import require

LOOK = """
import json
from mesh_tests.browser.page_heaps import look_for
print(json.dumps(look_for(1, 0, views=["/", "/links", "/queue?node=b1&address=p.7&subscriber="], look_s=2,
                          size=(10, 50))))
"""


def test_each_page_tells_its_heap_while_the_mesh_changes() -> None:
    require(CHROMIUM is not None, "a browser (Debian: chromium)")
    # A process of its own: while playwright is there, its loop runs in its thread.
    done = subprocess.run([sys.executable, "-c", LOOK], cwd=Path(__file__).parents[2], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    sizes, changes = json.loads(done.stdout)
    assert changes > 0
    for view, found in sizes.items():
        assert len(found) >= page_heaps.FEWEST_LOOKS, view
        assert min(found) > 100_000, view


@pytest.mark.parametrize(
    ("sizes", "grown"),
    [
        ([100, 100, 100], False),
        ([100, 130, 109], False),
        ([100, 100, 111], True),
        ([100, 90, 105, 100, 130, 120, 107, 300, 104], False),
        ([100, 102, 104, 106, 108, 110, 112, 114, 116], True),
        ([150, 100, 100, 100, 100, 100], False),
    ],
)
def test_a_heap_has_grown_if_its_last_sizes_are_larger_not_a_single_one(sizes: list[int], grown: bool) -> None:
    assert page_heaps.has_grown(sizes) is grown
