#!/usr/bin/env bash
# Makes .venv with amqpmesh and its test tools in it. Names each package before installing the package.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/packages.sh
source tools/proton.sh

# Python code that succeeds in a Python that can make virtual environments and compile C; proton and amqpmesh are
# compiled.
readonly USABLE='
import ensurepip, os, sys, sysconfig, venv
sys.exit(sys.version_info < (3, 11) or not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))'

find_python() {
    local name
    for name in ${PYTHON:-python3 python3.11 python3.12 python3.13}; do
        if "$name" -c "$USABLE" 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    return 1
}

has_compiler() { command -v cc >/dev/null && echo 'int main(void) { return 0; }' | cc -x c - -o /dev/null 2>/dev/null; }

missing=()
has_compiler || missing+=(gcc libc6-dev)
find_python >/dev/null || missing+=(python3 python3-dev python3-venv)
if ((${#missing[@]})); then
    install_packages "${missing[@]}"
fi

if ! python=$(find_python); then
    echo "amqpmesh needs Python 3.11 or newer with its venv module and headers; found $(python3 --version 2>&1)." >&2
    echo "Name another one: make setup PYTHON=/path/to/python3" >&2
    exit 1
fi

if ! .venv/bin/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "Making a virtual environment in .venv with $("$python" --version) ($python)"
    "$python" -m venv --clear .venv
fi
echo 'Installing amqpmesh and its test tools into .venv (the first time takes some minutes)'

run_pip() { # arguments: a sentence, the name of a log file, then options of pip
    echo "  $1"
    local -r log=.venv/$2
    shift 2
    if ! .venv/bin/python -m pip --disable-pip-version-check "$@" >"$log" 2>&1; then
        cat "$log" >&2
        exit 1
    fi
}

# Two thirds of the cost of forwarding is in proton's engine, which takes a tenth less time if optimized as a whole and
# linked to itself directly. Proton keeps to Python's stable ABI, so `make pythons` and `make dist` use this one wheel
# for every Python.
readonly WHEELS=.venv/wheels BUILT_ALONE='
import sys, cproton_ffi
sys.exit(cproton_ffi.lib.pn_sasl_extended() or cproton_ffi.lib.pn_ssl_present())'
build_proton() {
    local proton
    proton=$(sed -n 's/^ *\(python-qpid-proton[<>=].*\)/\1/p' setup.cfg)
    rm -rf "$WHEELS"
    CFLAGS="-O3 -flto=auto $CFLAGS" LDFLAGS='-Wl,-Bsymbolic' alone run_pip 'compiling proton' proton.log wheel \
        --wheel-dir "$WHEELS" --no-deps --no-cache-dir --no-binary python-qpid-proton \
        --config-settings=--build-option=--py-limited-api=cp311 "$proton"
}

# Without debug information, which takes a third of a compiler's time, and which nothing reads: CFLAGS=-g make setup
export CFLAGS="-g0 ${CFLAGS-}"
proton_build=
if ! .venv/bin/python -c "$BUILT_ALONE" 2>/dev/null || ! compgen -G "$WHEELS/python_qpid_proton-*-abi3-*.whl" >/dev/null; then
    # Meanwhile, as one core does it: proton is one module. In a process group of its own, so that no part of it goes on alone.
    set -m
    build_proton &
    proton_build=$!
    set +m
    trap 'kill -- "-$proton_build" 2>/dev/null || true' EXIT
fi
run_pip 'compiling the hot loop' install.log install --no-deps --editable .
if [[ -n $proton_build ]]; then
    wait "$proton_build"
    run_pip 'installing proton' install.log install --force-reinstall --no-deps "$WHEELS"/python_qpid_proton-*.whl
fi
run_pip 'installing what else there is to install' install.log install 'amqpmesh[test]'
