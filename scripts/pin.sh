#!/usr/bin/env bash
# Writes requirements/*.txt from requirements/*.in: every package that they need, at one version, with the hashes of all files of
# its release, so that the same lists serve Linux and macOS on each Python from 3.11 on. Needs `uv` (pip install uv).
#
#   UV=/path/to/uv scripts/pin.sh
set -euo pipefail
cd "$(dirname "$0")/../requirements"

uv=${UV:-uv}
command -v "$uv" >/dev/null || { echo "pin: uv is missing: pip install uv, or name it in UV." >&2; exit 1; }

# pin NAME [CONSTRAINT...]: the lists that are installed together agree.
pin() {
  local name=$1 constraints=() other
  shift
  for other in "$@"; do constraints+=(--constraint "$other.txt"); done
  "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-package colorama \
    --default-index https://pypi.org/simple --custom-compile-command "make pins" \
    ${constraints[@]+"${constraints[@]}"} "$name.in" --output-file "$name.txt"
}

# Every package is named, and is installed without what it depends on.
pin_packages() {
  "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-deps \
    --default-index https://pypi.org/simple --custom-compile-command "make pins" packages.in --output-file packages.txt
}

rm -f packages.txt base.txt test.txt wheels.txt triton.txt cibuildwheel.txt
pin base
pin test base
pin wheels base test
pin triton
pin cibuildwheel
pin_packages
