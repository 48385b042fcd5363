#!/usr/bin/env bash
# Checks the hand-written stubs against the compiled modules. Run as: tools/stubs.sh PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."

# Stubs below build/ are left out, because some are compiled for a sanitizer.
readonly PACKAGES=(wire recording router broker mesh)
modules=()
while read -r stub; do
    if [[ -e ${stub%.pyi}.pyx ]]; then
        module=${stub%.pyi}
        modules+=("${module//\//.}")
    fi
done < <(find "${PACKAGES[@]}" -name '*.pyi' | sort)

# A stub may leave out names that only compiled code uses; a name in a stub must exist, with the same parameters.
exec "$1" -m mypy.stubtest --concise --ignore-missing-stub --ignore-disjoint-bases --mypy-config-file setup.cfg \
    --allowlist <(echo '.*\.__init__  # The interpreter does not tell which parameters a compiled constructor has.') \
    "${modules[@]}"
