#!/usr/bin/env bash
# Installs what the build needs: LLVM, MLIR and clang 22.1 and tools from the system's packages, and a Python environment
# in .venv. A second run only installs what is missing.
#
#   scripts/setup.sh           what `make` and `make demo` need
#   scripts/setup.sh --tests   what `make test` needs as well
#   scripts/setup.sh --wheels  what `make wheels` needs as well
#
# PYTHON=python3.12 picks the Python for .venv; WITHOUT_TORCH=1 leaves torch and stock Triton out of the tests.
set -euo pipefail
cd "$(dirname "$0")/.."

# MLIR's C++ interfaces differ between minor versions; any patch release of this one will do.
LLVM=22
LLVM_MINOR=22.1
tests=no wheels=no
for argument in "$@"; do
  case $argument in
    --tests) tests=yes ;;
    --wheels) wheels=yes ;;
    *) echo "setup: unknown argument '$argument'; there are --tests and --wheels." >&2; exit 2 ;;
  esac
done

say() { echo "setup: $*" >&2; }
fail() { say "$*"; exit 1; }

# check_llvm PROGRAM: what this llvm-config belongs to is the version that is wanted.
check_llvm() {
  local version
  version=$("$1" --version)
  [[ $version == "$LLVM_MINOR".* ]] ||
    fail "$1 is of LLVM $version, and triton-metal is built with LLVM $LLVM_MINOR: install $LLVM_MINOR, or pass the prefix of one as LLVM_PREFIX to make."
}

llvm_packages=(
  "libmlir-$LLVM-dev" "mlir-$LLVM-tools" "llvm-$LLVM-dev" "llvm-$LLVM-tools" "clang-$LLVM" "clang-format-$LLVM"
  "libclang-$LLVM-dev" "libclang-cpp$LLVM-dev" "lld-$LLVM" "libclang-rt-$LLVM-dev"
)
debian_packages=(
  "${llvm_packages[@]}" ccache cmake ninja-build libboost-context-dev libgtest-dev nlohmann-json3-dev zlib1g-dev libzstd-dev
)

debian() {
  local missing=() package root=()
  if [[ $tests == yes ]]; then debian_packages+=(chromium); fi  # opens the pages of kernel.report
  if ! compgen -G "/usr/include/c++/1[2-9]" >/dev/null; then debian_packages+=(g++); fi
  if [[ -z ${PYTHON:-} ]] && ! python_works python3; then debian_packages+=(python3 python3-venv python3-dev); fi
  for package in "${debian_packages[@]}"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  # Tools that do not come from a package are as good.
  local still=()
  for package in ${missing[@]+"${missing[@]}"}; do
    case $package in
      cmake | ccache | chromium) command -v "$package" >/dev/null || still+=("$package") ;;
      ninja-build) command -v ninja >/dev/null || still+=("$package") ;;
      *) still+=("$package") ;;
    esac
  done
  if [[ ${#still[@]} -eq 0 ]]; then
    check_llvm "/usr/lib/llvm-$LLVM/bin/llvm-config"
    return
  fi
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || fail "these packages are missing: have root install them with 'apt-get install ${still[*]}', then run this again."
    root=(sudo)
  fi
  say "installing ${still[*]}"
  ${root[@]+"${root[@]}"} apt-get update -qq || fail "apt-get update failed: see its message above, mend the network or the package sources, and run this again."
  local version="" pinned=()
  for package in "${still[@]}"; do
    if [[ " ${llvm_packages[*]} " == *" $package "* ]]; then
      [[ -n $version ]] || version=$(llvm_version) || exit 1
      package+="=$version"
    fi
    pinned+=("$package")
  done
  ${root[@]+"${root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${pinned[@]}" >/dev/null ||
    fail "apt-get could not install the packages: see its message above, then run this again."
  check_llvm "/usr/lib/llvm-$LLVM/bin/llvm-config"
}

# llvm_version: the newest version of LLVM's packages that is of the wanted minor version.
llvm_version() {
  local versions
  versions=$(apt-cache madison "libmlir-$LLVM-dev" | awk -F ' *[|] *' '{ print $2 }')
  grep -m 1 "^[0-9]*:\?${LLVM_MINOR//./\\.}\." <<<"$versions" && return
  fail "${versions:+the package sources have LLVM ${versions//$'\n'/, }, and triton-metal is built with LLVM $LLVM_MINOR. }Add apt.llvm.org's packages, which have it ('wget https://apt.llvm.org/llvm.sh && sudo bash llvm.sh $LLVM'), then run this again."
}

mac() {
  command -v brew >/dev/null || fail "Homebrew is missing: install it from https://brew.sh, then run this again."
  local packages=("llvm@$LLVM" cmake ninja ccache boost googletest nlohmann-json) missing=() package
  if ! python_works "${PYTHON:-python3}"; then packages+=(python@3.13); fi
  for package in "${packages[@]}"; do
    brew list --versions "$package" >/dev/null 2>&1 || missing+=("$package")
  done
  if [[ ${#missing[@]} -gt 0 ]]; then
    say "installing ${missing[*]}"
    brew install --quiet "${missing[@]}" || fail "Homebrew could not install ${missing[*]}: see its message above, then run this again."
  fi
  check_llvm "$(brew --prefix "llvm@$LLVM")/bin/llvm-config"
}

# python_works PROGRAM: 3.11 or later, able to make an environment and to build extensions for it.
python_works() {
  command -v "$1" >/dev/null && "$1" - <<'PY' >/dev/null 2>&1
import ensurepip, os, sys, sysconfig, venv
assert sys.version_info >= (3, 11)
assert os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h"))
PY
}

python_environment() {
  local python=${PYTHON:-}
  if [[ ! -x .venv/bin/python ]]; then
    if [[ -z $python ]]; then
      for python in python3 /usr/bin/python3 python3.14 python3.13 python3.12 python3.11 ""; do
        [[ -n $python ]] && python_works "$python" && break
      done
    fi
    [[ -n $python ]] && python_works "$python" ||
      fail "no Python 3.11 or later with venv and headers was found: install one and pass it as PYTHON=/path/to/python3."
    "$python" -m venv .venv || fail "'$python -m venv .venv' failed: see its message above; PYTHON= picks another Python."
  fi
  .venv/bin/python scripts/make_importable.py || fail "the checkout could not be made importable in .venv: see the message above."
  install_requirements base
  if [[ $wheels == yes ]]; then install_requirements wheels; fi
  if [[ $tests == yes ]]; then
    install_requirements test
    # Stock Triton comes last and alone: see requirements/triton.in.
    if [[ -z ${WITHOUT_TORCH:-} ]] && ! { install_requirements torch optional && install_requirements triton optional --no-deps; }; then
      say "torch or stock Triton could not be installed: the tests that compare with them will be skipped."
    fi
  fi
}

# install_requirements NAME [optional [OPTION...]]: requirements/NAME.txt, unless this very file has been installed already. Files
# with hashes are taken only if every file that pip downloads has one of them.
install_requirements() {
  local name=$1 optional=${2:-} file=requirements/$1.txt stamp=.venv/.requirements-$1 options=()
  shift $(($# > 1 ? 2 : 1))
  cmp -s "$file" "$stamp" && return
  say "installing $file"
  if grep -q -- --hash= "$file"; then options+=(--require-hashes); fi
  if .venv/bin/python -m pip install --quiet --disable-pip-version-check ${options[@]+"${options[@]}"} "$@" -r "$file"; then
    cp "$file" "$stamp"
  elif [[ $optional == optional ]]; then
    return 1
  else
    fail "pip could not install $name's packages ($file): see its message above, mend the network or the index, and run this again."
  fi
}

case $(uname -s) in
  Darwin) mac ;;
  Linux)
    if command -v apt-get >/dev/null; then
      debian
    elif [[ -x ${LLVM_PREFIX:-/usr/lib/llvm-$LLVM}/bin/llvm-config ]]; then
      check_llvm "${LLVM_PREFIX:-/usr/lib/llvm-$LLVM}/bin/llvm-config"
    else
      fail "only Debian, Ubuntu and macOS are set up by themselves: install LLVM, MLIR and clang $LLVM_MINOR and pass LLVM_PREFIX=/their/prefix."
    fi
    ;;
  *) fail "$(uname -s) is not supported: use Debian 12 or later, Ubuntu, or macOS with Homebrew." ;;
esac
python_environment
