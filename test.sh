#!/usr/bin/env bash
# Installs what is missing (Debian 12, root or sudo), builds the tests in build-test and runs them.
# Arguments go to ctest: ./test.sh -R op_gradient
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

tools/install_packages.sh test
cmake -S . -B build-test -G Ninja -DCMAKE_BUILD_TYPE=Release -DTALLY_TESTS=ON \
  -DCMAKE_UNITY_BUILD=ON >/dev/null
cmake --build build-test --parallel "$(nproc)"
ctest --test-dir build-test --output-on-failure --parallel "$(nproc)" "$@"
