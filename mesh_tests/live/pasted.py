"""Runs the commands of a page as a reader would paste them, and compares what they print: for `test_tutorial.py`.

`python -m mesh_tests.live.pasted PAGE.md FOLDER FIRST LAST`, in a network namespace of its own: pages name fixed ports.

    ```console      each line with `$ ` is a command, what follows is all that it prints; `...` stands for any text
    ```sh           pasted as a whole
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"^```(console|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROCESS = re.compile(r"\d{4,7}")
COMMAND_S = 90.0


@dataclass(frozen=True)
class Pasted:
    line: int
    command: str
    printed: str | None
    """None: the page does not say."""


def commands(page: str) -> Iterator[Pasted]:
    for block in BLOCK.finditer(page):
        line = page.count("\n", 0, block.start()) + 2
        if block[1] == "sh":
            yield Pasted(line, block[2], None)
            continue
        for part in re.split(r"^\$ ", block[2], flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            yield Pasted(line, command, printed)
            line += part.count("\n")


def is_as_shown(shown: str, printed: str) -> bool:
    """Blanks at the end of a line, the width of columns and the numbers of processes do not count."""
    told = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
    return re.fullmatch("".join(_pattern(line.rstrip()) for line in shown.strip("\n").splitlines()), told) is not None


def _pattern(line: str) -> str:
    if line == "...":
        return r"(?:.*\n)*?"
    words = [r"\d+" if PROCESS.fullmatch(word) else re.escape(word).replace(r"\.\.\.", ".*") for word in line.split()]
    return r" *" + r" +".join(words) + r"\n"


def run(pasted: Pasted, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", pasted.command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )
    return done.stdout


def main(page: Path, folder: Path, first: str, last: str) -> int:
    """From the command that contains ``first`` to ``last``, or to the first that prints other than what is shown."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    whole = list(commands(page.read_text()))
    start = next(i for i, pasted in enumerate(whole) if first in pasted.command)
    end = next(i for i, pasted in enumerate(whole) if i > start and pasted.command == last)
    try:
        for pasted in whole[start : end + 1]:
            printed = run(pasted, folder)
            sys.stdout.write(f"{page.name}:{pasted.line}: $ {pasted.command}\n{printed}")
            if pasted.printed is not None and not is_as_shown(pasted.printed, printed):
                sys.stdout.write(f"^ NOT AS SHOWN:\n{pasted.printed}")
                return 1
    finally:
        subprocess.run(["amqpmesh", "down"], cwd=folder, capture_output=True, check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]))
