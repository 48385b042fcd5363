#!/usr/bin/env bash
# Runs the fast tier, unit tests and simulation, on each other Python that setup.cfg names, in .venv-<version>.
# A version that the machine lacks is said to be absent, which is not a failure. More words go to pytest.
# With a word in ONE_FOR only one of them, which the word decides: another word, perhaps another one.
set -uo pipefail
cd "$(dirname "$0")/.."
source tools/stages.sh

versions() { # those of setup.cfg, but for the one of .venv
    local -r own=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    sed -n 's/^ *Programming Language :: Python :: \(3\.[0-9]*\)$/\1/p' setup.cfg | grep -vx "$own"
}

chosen() {
    local -a all
    mapfile -t all < <(versions)
    ((${#all[@]})) || return
    if [[ -z ${ONE_FOR:-} ]]; then
        printf '%s\n' "${all[@]}"
        return
    fi
    local -r hash=$(sha256sum <<<"$ONE_FOR" | cut -c1-8)
    echo "${all[16#$hash % ${#all[@]}]}"
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

site_packages() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))'; }

# Compiled modules lie beside their sources, one file for each Python: those of .venv stay. Proton's keeps to the stable
# ABI, so the one of .venv is for every Python.
install_into() { # virtual environment, Python
    [[ -x $1/bin/python ]] || "$2" -m venv "$1" || return
    cp -r "$(site_packages .venv)"/{cproton.py,cproton_ffi.abi3.so,proton,python_qpid_proton-*.dist-info} \
        "$(site_packages "$1")" || return
    # Nothing is measured here: half the time to compile, half as fast.
    CFLAGS='-O1 -g0' "$1/bin/python" -m pip install -q --disable-pip-version-check --editable '.[test]'
}

for version in $(chosen); do
    if ! python=$(find_python "$version"); then
        stages_told+=("$(printf '%-12s          %s' absent "python$version with venv and headers")")
        continue
    fi
    stage install_into ".venv-$version" "$python" &&
        stage ".venv-$version/bin/python" -m pytest -q -n auto mesh_tests/unit mesh_tests/sim "$@"
done
tell_stages
