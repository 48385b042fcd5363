#!/usr/bin/env bash
# Runs the tests under AddressSanitizer: every use of freed memory, and every access beyond its bounds, ends the run.
# Wants .venv; `make asan` sees to that. More words go to pytest: tools/asan.sh -n 1 -k vanish
# ASAN_TESTS has other tests than these, and ASAN_REPORT a file for pytest's report of them as JUnit XML.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/asan/build.sh

readonly REPORTS=$BUILD/reports
read -r -a TESTS <<<"${ASAN_TESTS:-mesh_tests/unit mesh_tests/sim mesh_tests/fuzz/test_simulated_peers.py}"
readonly TESTS
# Nothing compiled is called there.
readonly IGNORED=(
    mesh_tests/unit/addressing mesh_tests/unit/linklogs mesh_tests/unit/router/routing mesh_tests/unit/test_contracts.py
    mesh_tests/unit/mesh/{certs,drills,reports,sample_logs,terminal}
    mesh_tests/unit/mesh/deploy/test_{deleted_files,display,free_ports,processes,running,scratch,supervisor}.py
    mesh_tests/unit/mesh/client/test_{journal,url}.py mesh_tests/unit/mesh/messages/test_messages.py
)
# What cannot hold here: the pool is off, and everything takes twice the time.
readonly EXCEPT=(
    mesh_tests/unit/wire/test_engine_limits.py::test_a_delivery_that_was_settled_is_the_next_one
)

# Reports go to files: pytest and xdist swallow what a dying worker says.
sanitized() { # name of the reports, then a command
    local -r log=$REPORTS/$1
    shift
    LD_PRELOAD=$runtime PYTHONMALLOC=malloc \
        ASAN_OPTIONS="detect_leaks=0:halt_on_error=1:abort_on_error=1:log_path=$log" "$@"
}

# A sanitizer that sees nothing proves nothing: it must see this.
check_it_sees() {
    if PYTHONPATH=$COPY sanitized control "$PYTHON" tools/asan/stale_delivery.py >"$BUILD/last.log" 2>&1 ||
        ! grep -qs heap-use-after-free "$REPORTS"/control.*; then
        cat "$BUILD/last.log" >&2
        fail 'AddressSanitizer does not see a delivery used after it was settled (tools/asan/stale_delivery.py)'
    fi
}

show_reports() { # false when there are any: the first whole, of the others what they are about
    local file count=0
    for file in "$REPORTS"/tests.*; do
        [[ -e $file ]] || continue
        count=$((count + 1))
        printf '\n### %s\n' "$file" >&2
        if ((count <= 3)); then cat "$file" >&2; else grep SUMMARY "$file" >&2 || tail -1 "$file" >&2; fi
    done
    ((count == 0))
}

[[ -x .venv/bin/python ]] || fail 'there is no .venv; run: make setup'
mkdir -p "$BUILD"
runtime=$(find_runtime)
build
rm -rf "$REPORTS"
mkdir -p "$REPORTS"
cd "$COPY"
check_it_sees
status=0
# A loop without end in compiled code hears no signal: only faulthandler's own thread ends it.
sanitized tests "$PYTHON" -m pytest -q -n 2 -o faulthandler_timeout=180 -o faulthandler_exit_on_timeout=true \
    ${ASAN_REPORT:+"--junitxml=$ASAN_REPORT"} \
    "${IGNORED[@]/#/--ignore=}" "${EXCEPT[@]/#/--deselect=}" "${TESTS[@]}" "$@" || status=$?
show_reports || fail 'AddressSanitizer found what is above'
exit $status
