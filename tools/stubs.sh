#!/usr/bin/env bash
# Do the hand-written stubs say what the compiled modules have? Run as: tools/stubs.sh PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."

# Not the copies below build/, some of which are compiled for a sanitizer.
readonly PACKAGES=(wire recording router broker mesh)
modules=()
while read -r stub; do
    if [[ -e ${stub%.pyi}.pyx ]]; then
        module=${stub%.pyi}
        modules+=("${module//\//.}")
    fi
done < <(find "${PACKAGES[@]}" -name '*.pyi' | sort)

# A stub may leave out what only compiled code uses. What is in it must be there, with the same parameters.
exec "$1" -m mypy.stubtest --concise --ignore-missing-stub --ignore-disjoint-bases --mypy-config-file setup.cfg \
    --allowlist <(echo '.*\.__init__  # The interpreter does not tell which parameters a compiled constructor has.') \
    "${modules[@]}"
