#!/usr/bin/env bash
# Builds what is published: a source distribution, a wheel of amqpmesh from it, and a wheel of proton, which PyPI has as source
# only. Run as: tools/dist.sh [PYTHON [FOLDER]]; otherwise for the Python of .venv, into dist.
# Wants .venv; `make dist` sees to that. What is compiled: whatever git would commit, committed or not.
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
if ! "$work/venv/bin/python" -m build --no-isolation --outdir "$TO" "$work/sources" >"$work/log" 2>&1; then
    cat "$work/log" >&2
    exit 1
fi
# Proton's wheel is for every Python from 3.11 on.
cp .venv/wheels/python_qpid_proton-*.whl "$TO"
ls "$TO"
