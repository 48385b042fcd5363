#!/usr/bin/env bash
# Runs the fast tier, unit tests and simulation, on each other Python that setup.cfg names, in .venv-<version>.
# A version that the machine lacks is said to be absent, which is not a failure. More words go to pytest.
set -uo pipefail
cd "$(dirname "$0")/.."
source tools/proton.sh
source tools/stages.sh

versions() { # those of setup.cfg, but for the one of .venv
    local -r own=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    sed -n 's/^ *Programming Language :: Python :: \(3\.[0-9]*\)$/\1/p' setup.cfg | grep -vx "$own"
}

find_python() { # version; prints a Python that can make virtual environments and compile
    local candidate
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
        # By its own name: what pyenv puts on PATH runs only versions that are chosen.
        if "$candidate" -c "import os, sys, sysconfig, venv, ensurepip, ssl, sqlite3
sys.exit('%d.%d' % sys.version_info[:2] != '$1' or not os.path.exists(sysconfig.get_path('include') + '/Python.h'))" 2>/dev/null; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    return 1
}

# Compiled modules lie beside their sources, one file for each Python: those of .venv stay.
install_into() { # virtual environment, Python
    [[ -x $1/bin/python ]] || "$2" -m venv "$1"
    local -r proton=$(.venv/bin/python tools/asan/requirements.py --proton)
    "$1/bin/python" -c 'import cproton_ffi' 2>/dev/null ||
        alone "$1/bin/python" -m pip install -q --disable-pip-version-check --no-cache-dir --no-binary python-qpid-proton "$proton"
    "$1/bin/python" -m pip install -q --disable-pip-version-check --editable '.[test]'
}

for version in $(versions); do
    if ! python=$(find_python "$version"); then
        stages_told+=("$(printf '%-12s          %s' absent "python$version with venv and headers")")
        continue
    fi
    stage install_into ".venv-$version" "$python" &&
        stage ".venv-$version/bin/python" -m pytest -q -n auto mesh_tests/unit mesh_tests/sim "$@"
done
tell_stages
