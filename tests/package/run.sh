#!/usr/bin/env bash
# run.sh BUILD COMPILER...: installs what lies in the build folder BUILD into a fresh prefix, and
# builds and runs a project against it with each compiler. The examples are copied away first, so
# that no header of the source tree is found by chance.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/prefix" >/dev/null
mkdir "$scratch/outside"
cp -r "$here/../../examples" "$scratch/outside/examples"
for compiler in "$@"; do
  out=$scratch/build-$compiler
  cmake -S "$here" -B "$out" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_PREFIX_PATH="$scratch/prefix" -DEXAMPLES="$scratch/outside/examples" >/dev/null
  cmake --build "$out" --parallel "$(nproc)"
  ctest --test-dir "$out" --output-on-failure
done
