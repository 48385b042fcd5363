"""Prints the packages that amqpmesh needs to run, be tested and be built, from setup.cfg: one requirement a line.

Proton is left out; ``--proton`` prints only Proton.
"""

import configparser
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROTON = "python-qpid-proton"


def requirements() -> list[str]:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    listed = config["options"]["install_requires"] + config["options.extras_require"]["test"]
    return [*build, *filter(None, listed.splitlines())]


def name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]


wants_proton = sys.argv[1:] == ["--proton"]
for requirement in requirements():
    if (name(requirement) == PROTON) == wants_proton:
        sys.stdout.write(f"{requirement}\n")
