#!/usr/bin/env bash
# Builds Mesa's compiler for Apple's G13 from Debian's source package, with this folder's patch. Needs Debian 12 and root for
# the packages; a second run does nothing. `make agx` runs it after the project's own build.
#
#   benchmarks/agx/build.sh            build into $TRITON_METAL_AGX (~/.cache/triton-metal/agx)
#   benchmarks/agx/build.sh --again    build anew
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=${TRITON_METAL_AGX:-$HOME/.cache/triton-metal/agx}
version=25.0.7 release=2~bpo12+1
packages=(
  llvm-15-dev libclang-15-dev libclang-cpp15-dev clang-15 libclc-15 libclc-15-dev libllvmspirvlib-15-dev llvm-spirv-15
  spirv-tools glslang-tools libdrm-dev libelf-dev libexpat1-dev libzstd-dev zlib1g-dev bison flex patch pkg-config xz-utils
)

say() { echo "agx: $*" >&2; }
fail() { say "$*"; exit 1; }

wanted=$(sha256sum < "$here/mesa-$version.patch" | cut -c1-16)
if [[ ${1:-} != --again && -x $target/agx-compiler && $(cat "$target/patch" 2>/dev/null) == "$wanted" ]]; then
  exit 0
fi
command -v apt-get >/dev/null || fail "this build takes Mesa's source and its dependencies from Debian's packages, and there is no apt-get here."
mkdir -p "$target/apt/lists/partial" "$target/apt/cache/archives/partial" "$target/apt/sources"
cd "$target"

# Lists of its own, so that the machine's are left as they are.
mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -1)
cat > apt/sources/mesa.sources <<LIST
Types: deb-src
URIs: ${mirror:-http://deb.debian.org/debian}
Suites: bookworm-backports
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
LIST
own=(-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$target/apt/sources" -o Dir::State::Lists="$target/apt/lists"
  -o Dir::Cache="$target/apt/cache" -o APT::Sandbox::User=root)
archive=mesa_$version.orig.tar.xz
if [[ ! -f $archive ]]; then
  say "fetching the source package of Mesa $version"
  apt-get "${own[@]}" -qq update
  # A mirror may have dropped the package's other files. The archive is all that is used, and its hash is in the signed list.
  apt-get "${own[@]}" -qq source --download-only "mesa=$version-$release" || true
  [[ -f $archive ]] || fail "the source package mesa $version-$release could not be fetched from ${mirror:-Debian}."
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if ((${#missing[@]})); then
  say "installing ${missing[*]}"
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends "${missing[@]}" >/dev/null
fi
[[ -x tools/bin/meson ]] || { python3 -m venv tools; tools/bin/pip -q install mako meson ninja packaging ply pyyaml setuptools; }
export PATH=$target/tools/bin:$PATH

say "building (some minutes)"
rm -rf "mesa-$version" build
tar -xf "$archive"
patch -s -p1 -d "mesa-$version" < "$here/mesa-$version.patch"
printf "[binaries]\nllvm-config = '%s'\n" /usr/bin/llvm-config-15 > native.ini
options=(--native-file native.ini -Dbuildtype=release -Db_ndebug=false -Dllvm=enabled -Dshared-llvm=enabled -Dopengl=true
  -Dgallium-drivers=asahi -Dvulkan-drivers= -Dplatforms= -Dvideo-codecs=)
for off in egl gbm gles1 gles2 glx gallium-va gallium-vdpau libunwind shader-cache valgrind zstd; do options+=("-D$off=disabled"); done
meson setup build "mesa-$version" "${options[@]}" > configure.log 2>&1 || { tail -20 configure.log >&2; fail "Mesa could not be configured."; }
ninja -C build src/asahi/clc/asahi_clc > build.log 2>&1 || { tail -20 build.log >&2; fail "Mesa could not be built."; }
cp build/src/asahi/clc/asahi_clc agx-compiler
echo "$wanted" > patch
rm -rf "mesa-$version" build
say "built $target/agx-compiler"
