"""What setup.cfg cannot say: the parts that are compiled. Cython turns each .pyx into a module beside it."""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

_HERE = Path(__file__).parent
_PACKAGES = ("wire", "recording", "router", "broker", "mesh")
_CORES = len(os.sched_getaffinity(0))


def _extensions() -> list[Extension]:
    sources = [path.relative_to(_HERE) for package in _PACKAGES for path in sorted((_HERE / package).rglob("*.pyx"))]
    return [Extension(".".join(path.with_suffix("").parts), [str(path)]) for path in sources]


setup(
    ext_modules=cythonize(
        _extensions(),
        build_dir="build/cython",
        include_path=[str(_HERE)],
        nthreads=_CORES,
        compiler_directives={"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True},
    ),
    options={"build_ext": {"parallel": _CORES}},
)
