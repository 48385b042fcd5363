#!/usr/bin/env bash
# Builds a wheel for each Python that setup.cfg names, installs the wheel in .venv-<version>, and runs the unit tests and the
# simulations there; meanwhile mesh_tests/wheel tests the same wheel on a bare Debian.
# A version that the machine lacks is reported as absent, which is no failure. Arguments go to pytest's first run.
# If ONE_FOR is set, only one version is tested, chosen by a hash of ONE_FOR.
set -uo pipefail
cd "$(dirname "$0")/.."
source tools/packages.sh
source tools/stages.sh

versions() { sed -n 's/^ *Programming Language :: Python :: \(3\.[0-9]*\)$/\1/p' setup.cfg; }

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

find_python() { # argument: version; prints the path of a Python that can make virtual environments and compile
    local candidate
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
        # Versions of pyenv are found by their path, because pyenv's commands on PATH run only the versions that are
        # chosen.
        if "$candidate" -c "import os, sys, sysconfig, venv, ensurepip, ssl, sqlite3
sys.exit('%d.%d' % sys.version_info[:2] != '$1' or not os.path.exists(sysconfig.get_path('include') + '/Python.h'))" 2>/dev/null; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    return 1
}

site_packages() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))'; }

install_wheel() { # arguments: virtual environment, Python
    [[ -x $1/bin/python ]] || "$2" -m venv "$1" || return
    # The wheel is not measured, and compiles in a third of the time without optimization.
    CFLAGS='-O0 -g0' bash tools/dist.sh "$2" "$1/dist" || return
    local -r pip=("$1/bin/python" -m pip install -q --disable-pip-version-check --find-links "$1/dist")
    "${pip[@]}" "$(echo "$1"/dist/amqpmesh-*.whl)[test]" || return
    # Replaces a wheel of the same version that was built from another revision.
    "${pip[@]}" --force-reinstall --no-deps "$1"/dist/amqpmesh-*.whl
}

# The checkout comes last on the path, also in programs that tests start: mesh_tests comes from the checkout, all other
# packages from the wheel.
test_wheel() { # arguments: virtual environment, then options of pytest
    local -r venv=$1 site=$(realpath "$(site_packages "$1")")
    shift
    AMQPMESH_WHEEL=$(realpath "$venv"/dist/amqpmesh-*.whl) AMQPMESH_INSTALLED_IN=$site \
        PYTHONSAFEPATH=1 PYTHONPATH=$site:$PWD "$venv/bin/pytest" -q -o "pythonpath=$site ." "$@"
}

# Downloads and a single dpkg leave a core to the other tests, so the tests on a bare Debian run beside them; their output is
# shown afterwards.
test_beside_debian() { # arguments: virtual environment, then options of pytest for unit tests and simulations
    local -r venv=$1
    shift
    test_wheel "$venv" mesh_tests/wheel &>"$venv/debian.log" &
    debian_tests=$!
    stage test_wheel "$venv" -n auto mesh_tests/unit mesh_tests/sim "$@"
    stage end_debian_tests "$venv"
}

end_debian_tests() { # argument: virtual environment; returns the exit code of the tests that run beside the others
    local status=0
    wait "$debian_tests" || status=$?
    cat "$1/debian.log"
    return "$status"
}

((EUID != 0)) || command -v mmdebstrap >/dev/null || stage install_packages mmdebstrap
for version in $(chosen); do
    if ! python=$(find_python "$version"); then
        stages_told+=("$(printf '%-12s          %s' absent "python$version with venv and headers")")
        continue
    fi
    stage install_wheel ".venv-$version" "$python" || continue
    test_beside_debian ".venv-$version" "$@"
done
tell_stages
