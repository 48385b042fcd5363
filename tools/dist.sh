#!/usr/bin/env bash
# Builds the published files: a source distribution, a wheel of amqpmesh from this distribution, and a wheel of proton, which
# PyPI has as source only. Run as: tools/dist.sh [PYTHON [FOLDER]]; by default for the Python of .venv, into dist.
# Needs .venv, which `make dist` makes. Compiles the files that git would commit, including uncommitted changes.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/sources.sh

readonly PYTHON=${1:-.venv/bin/python} TO=${2:-dist}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$TO"
mkdir -p "$TO"
"$PYTHON" -m venv "$work/venv"
mapfile -t wanted < <(.venv/bin/python -c '
import tomllib
print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")')
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check 'build>=1.3,<2' "${wanted[@]}"
copy_sources_to "$work/sources"
echo "Building a source distribution, and a wheel from it for $("$PYTHON" --version) (some minutes)"
export AMQPMESH_C_FILES=$PWD/build/cython
if ! "$work/venv/bin/python" -m build --no-isolation --outdir "$TO" "$work/sources" >"$work/log" 2>&1; then
    cat "$work/log" >&2
    exit 1
fi
# Proton's wheel works with every Python from 3.11 on.
cp .venv/wheels/python_qpid_proton-*.whl "$TO"
ls "$TO"
