#!/bin/sh
# Make .venv with everything the project needs, or say in one sentence what is missing and how to install it.
# With the argument `demo` only what `make demo` needs is installed.
set -eu
cd "$(dirname "$0")/.."

fail() {
    printf 'lowwater: %s\n' "$1" >&2
    exit 1
}

new_enough='import sys; sys.exit(sys.version_info < (3, 11))'
python=""
for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c "$new_enough" 2>/dev/null; then
        python=$candidate
        break
    fi
done

if [ "$(uname -s)" = Darwin ]; then
    [ -n "$python" ] || fail "Python 3.11 or newer is missing; install it with: brew install python"
else
    [ -n "$python" ] || fail "Python 3.11 or newer is missing; install it with: sudo apt-get install python3 python3-venv"
fi
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    fail "$python has no venv module; install it with: sudo apt-get install python3-venv"

if ! .venv/bin/python -c "$new_enough" 2>/dev/null; then
    echo "Setting up .venv with $("$python" --version) ..."
    rm -rf .venv
    "$python" -m venv .venv
fi
case "${1:-}" in
    demo) packages='.' stamp=demo ;;
    *) packages='.[dev]' stamp=ready ;;
esac
.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable "$packages" ||
    fail "the packages could not be installed; check that pip reaches a package index and run make again"
touch ".venv/$stamp"
