"""What setup.cfg cannot say: the parts that are compiled. Cython turns each .pyx into a module beside it."""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

_HERE = Path(__file__).parent
_PACKAGES = ("wire", "recording", "router", "broker", "mesh")
_CORES = len(os.sched_getaffinity(0))


def _extensions() -> list[Extension]:
    sources = [path.relative_to(_HERE) for package in _PACKAGES for path in sorted((_HERE / package).rglob("*.pyx"))]
    return [Extension(".".join(path.with_suffix("").parts), [str(path)]) for path in sources]


class _BuildCython(build_ext):
    """Translates when modules are compiled, not before: a source distribution has the .pyx files and no C."""

    def build_extensions(self) -> None:
        translated = cythonize(
            _extensions(),
            build_dir="build/cython",
            include_path=[str(_HERE)],
            nthreads=_CORES,
            compiler_directives={"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True},
        )
        in_c = {extension.name: extension for extension in translated}
        for extension in self.extensions:
            extension.sources = in_c[extension.name].sources
            extension.depends = in_c[extension.name].depends
        super().build_extensions()


setup(
    ext_modules=_extensions(),
    cmdclass={"build_ext": _BuildCython},
    options={"build_ext": {"parallel": _CORES}},
)
