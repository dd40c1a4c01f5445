#!/usr/bin/env bash
# install_packages.sh build|test|ci: installs the Debian packages that this needs and that are
# missing, and touches no network when none is. Needs root or sudo only then.
#   build  compiler, build tools and the libraries that the program links
#   test   build + the test framework
#   ci     test + benchmark library, clang with its sanitizer runtimes, formatter and linter
set -euo pipefail

build=(g++ cmake ninja-build libopenblas-serial-dev libfmt-dev libcli11-dev nlohmann-json3-dev
  libpcre2-dev)
test=("${build[@]}" catch2)
ci=("${test[@]}" libbenchmark-dev clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev)

case "${1:-}" in
  build) wanted=("${build[@]}") ;;
  test) wanted=("${test[@]}") ;;
  ci) wanted=("${ci[@]}") ;;
  *) echo "usage: $0 build|test|ci" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "install_packages: this system has no Debian packages, so nothing is installed here." >&2
  echo "Needed, by their Debian 12 names: ${wanted[*]}" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ "${#missing[@]}" -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install_packages: need root or sudo to install: ${missing[*]}" >&2
    echo "Run as root: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "Installing ${missing[*]}"
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300
  -o Dpkg::Use-Pty=0)
if ! { "${apt[@]}" update &&
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; } </dev/null; then
  echo "install_packages: apt-get could not install: ${missing[*]}" >&2
  echo "Its message is above; no network and a distribution other than Debian 12 are the usual" \
    "causes." >&2
  exit 1
fi
