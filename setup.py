"""What setup.cfg cannot say: the parts that are compiled. Cython turns each .pyx into a module beside it."""

import hashlib
import os
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

_HERE = Path(__file__).parent
_PACKAGES = ("addressing", "wire", "recording", "router", "broker", "mesh")
_CORES = len(os.sched_getaffinity(0))
_BUILD = "build/cython"
# A CFLAGS in the environment takes the place of Python's own flags, so `CFLAGS=-g` alone would compile code that is not
# optimized, and takes nearly twice the instructions. An -O in CFLAGS counts.
_FLAGS = [] if "-O" in os.environ.get("CFLAGS", "-O") else ["-O3", "-DNDEBUG", "-fwrapv"]
_DIRECTIVES = {"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True}


def _sources(suffix: str) -> list[Path]:
    found = (sorted((_HERE / package).rglob(f"*{suffix}")) for package in _PACKAGES)
    return [path.relative_to(_HERE) for paths in found for path in paths]


def _extensions() -> list[Extension]:
    return [
        Extension(".".join(path.with_suffix("").parts), [str(path)], extra_compile_args=_FLAGS)
        for path in _sources(".pyx")
    ]


def _digest() -> str:
    """Return a digest of all that decides about the C files: the sources, Cython, and how Cython is called."""
    digest = hashlib.sha256(f"{Cython.__version__} {_DIRECTIVES}".encode())
    for path in (*_sources(".pyx"), *_sources(".pxd")):
        digest.update(f"\n{path} {hashlib.sha256((_HERE / path).read_bytes()).hexdigest()}".encode())
    return digest.hexdigest()


class _BuildCython(build_ext):
    """Translates when modules are compiled, not before: a source distribution has the .pyx files and no C.

    AMQPMESH_C_FILES may name the build/cython of another build. Its C files are compiled instead if they were made of
    the very same sources; a digest tells, as dates of files cannot.
    """

    def build_extensions(self) -> None:
        given = Path(os.environ.get("AMQPMESH_C_FILES", "/nonexistent"))
        if (given / "digest").exists() and (given / "digest").read_text() == _digest():
            for extension in self.extensions:
                extension.sources = [str((given / source).with_suffix(".c")) for source in extension.sources]
        else:
            self._translate()
        # Here, as pip's builds drop options that are given to `setup`.
        self.parallel = self.parallel or _CORES
        super().build_extensions()

    def _translate(self) -> None:
        made_of = _HERE / _BUILD / "digest"
        made_of.unlink(missing_ok=True)
        translated = cythonize(
            _extensions(),
            build_dir=_BUILD,
            include_path=[str(_HERE)],
            nthreads=_CORES,
            compiler_directives=_DIRECTIVES,
        )
        in_c = {extension.name: extension for extension in translated}
        for extension in self.extensions:
            extension.sources = in_c[extension.name].sources
            extension.depends = in_c[extension.name].depends
        made_of.write_text(_digest())


setup(ext_modules=_extensions(), cmdclass={"build_ext": _BuildCython})
