# Sourced by tools/asan.sh. `build` compiles proton and amqpmesh's compiled modules with AddressSanitizer, in .venv-asan.
# The compiled modules in the checkout belong to .venv, so amqpmesh is built and tested in a copy of the checkout.

source tools/proton.sh
source tools/sources.sh

# -g1: reports name file and line, which is all that they need, and compiling takes a quarter less.
readonly FLAGS='-fsanitize=address -fno-omit-frame-pointer -O1 -g1 -UNDEBUG'
readonly PATCH=$PWD/tools/asan/no-pools.patch
readonly BUILD=$PWD/build/asan VENV=$PWD/.venv-asan
readonly COPY=$BUILD/amqpmesh PYTHON=$VENV/bin/python

fail() {
    echo "make asan: $*" >&2
    exit 1
}

quietly() { # argument: a command whose output is printed only if it fails
    "$@" >"$BUILD/last.log" 2>&1 || {
        cat "$BUILD/last.log" >&2
        fail "this failed: $*"
    }
}

run_pip() { quietly "$PYTHON" -m pip --disable-pip-version-check "$@"; }

# Built without pip's cache, because an ordinary build must not find a wheel with the sanitizer there.
compile_with_pip() {
    printf '[build_ext]\nparallel = %d\n' "$(nproc)" >"$BUILD/parallel.cfg"
    DIST_EXTRA_CONFIG=$BUILD/parallel.cfg CFLAGS=$FLAGS LDFLAGS=-fsanitize=address \
        alone run_pip "$@" --no-cache-dir --no-deps --no-build-isolation
}

wanted_proton() { sed -n 's/^ *\(python-qpid-proton[<>=].*\)/\1/p' setup.cfg; }

find_runtime() { # prints the path of the sanitizer's library, to be preloaded
    local runtime
    runtime=$(cc -print-file-name=libasan.so)
    [[ -e $runtime ]] || fail 'cc has no libasan.so. On Debian it comes with gcc: apt-get install gcc'
    # shellcheck disable=SC2086 # flags are words
    cc $FLAGS -x c -o "$BUILD/empty" - <<<'int main(void) { return 0; }' || fail 'cc cannot link with AddressSanitizer'
    realpath "$runtime"
}

# Packages that are not built here, pip too, come from .venv, which is behind .venv-asan in the path.
make_venv() {
    "$PYTHON" -c '' 2>/dev/null || quietly .venv/bin/python -m venv --clear --without-pip "$VENV"
    .venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$(site_packages)/of-venv.pth"
}

site_packages() { "$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

fetch_proton() { # prints the path of proton's source archive
    local -r sources=$BUILD/sdist
    local wanted
    wanted=$(wanted_proton)
    if [[ $(cat "$sources/wanted" 2>/dev/null) != "$wanted" ]]; then
        rm -rf "$sources"
        run_pip download --no-deps --no-build-isolation --no-binary python-qpid-proton --dest "$sources" "$wanted"
        echo "$wanted" >"$sources/wanted"
    fi
    echo "$sources"/*.tar.gz
}

patch_proton() { # arguments: archive, folder
    rm -rf "$2"
    mkdir -p "$2"
    tar -xzf "$1" -C "$2" --strip-components=1
    # GIT_CEILING_DIRECTORIES: within a repository, git would skip files that the repository ignores, without an error.
    GIT_CEILING_DIRECTORIES=$(dirname "$2") git -C "$2" apply "$PATCH" ||
        fail "$(basename "$1") is not what $PATCH was made for: see where it pools objects now, and renew the patch"
}

install_proton() {
    local archive key wheel
    archive=$(fetch_proton)
    key=$(cat "$archive" "$PATCH" tools/proton.sh <(echo "$FLAGS"; cc --version; "$PYTHON" -VV) | sha256sum | cut -c1-16)
    wheel=$BUILD/wheel-$key
    if [[ ! -d $wheel ]]; then
        echo "Compiling $(basename "$archive" .tar.gz) with AddressSanitizer"
        patch_proton "$archive" "$BUILD/proton"
        compile_with_pip wheel --wheel-dir "$wheel.new" "$BUILD/proton"
        mv "$wheel.new" "$wheel"
    fi
    run_pip install --no-deps --force-reinstall "$wheel"/*.whl
}

compiled_key() { # prints a hash of the sources that setup.py compiles
    source_files | grep -zE '\.(pyx|pxd|c|h)$|^(setup\.(py|cfg)|pyproject\.toml)$' | sort -z | xargs -0 sha256sum |
        sha256sum | cut -c1-16
}

copy_sources() { # copies the sources, and deletes files of the copy that are not sources any more
    source_files | LC_ALL=C sort -z >"$BUILD/files.new"
    mkdir -p "$COPY"
    [[ ! -e $BUILD/files ]] ||
        LC_ALL=C comm -z -23 "$BUILD/files" "$BUILD/files.new" | (cd "$COPY" && xargs -0 rm -f)
    tar -c --null --files-from="$BUILD/files.new" | tar -x -C "$COPY"
    mv "$BUILD/files.new" "$BUILD/files"
}

install_amqpmesh() { # compiles nothing if the compiled modules were built from these sources
    local key
    key=$(compiled_key)
    if [[ $(cat "$BUILD/built" 2>/dev/null) == "$key" && -d $COPY ]]; then
        copy_sources
        return
    fi
    echo 'Compiling amqpmesh with AddressSanitizer'
    rm -rf "$COPY" "$BUILD/built" "$BUILD/files"
    copy_sources
    # Compiles the C code that Cython wrote for .venv.
    AMQPMESH_C_FILES=$PWD/build/cython compile_with_pip install --editable "$COPY"
    echo "$key" >"$BUILD/built"
}

check_instrumented() {
    local file count=0
    while IFS= read -r -d '' file; do
        grep -q __asan_report "$file" || fail "$file was built without AddressSanitizer"
        count=$((count + 1))
    done < <(find "$COPY" "$VENV"/lib/python*/site-packages/cproton_ffi* -name '*.so' -print0)
    ((count > 1)) || fail "$COPY has no compiled parts"
}

build() {
    mkdir -p "$BUILD"
    make_venv
    install_proton
    install_amqpmesh
    check_instrumented
}
