#!/usr/bin/env bash
# The style checks themselves: each must find the fault planted for it, and nothing in a clean tree.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cd "$tree"
failed=0

clean_tree() {
  rm -rf ./*
  mkdir -p core autograd backends/cpu tests
  printf '#pragma once\n#include "core/shape.h"\n' > autograd/tape.h
  printf '#include "autograd/tape.h"\n' > autograd/tape.cpp
  echo 'add_library(x tape.cpp)' > autograd/CMakeLists.txt
}
# expect pass|fail CHECK ARGS...
expect() {
  local wanted=$1 check=$2 got=fail
  shift 2
  if bash "$here/$check.sh" "$@" >output 2>&1; then got=pass; fi
  [ "$got" = "$wanted" ] || { failed=1; echo "$check: wanted $wanted, got $got:"; cat output; }
  rm -f output
}

clean_tree
for check in dependencies words links sources; do expect pass $check; done

printf '#pragma once\n#include "autograd/tape.h"\n' > core/up.h
expect fail dependencies
clean_tree
printf '#pragma once\n#include "backends/meta/meta.h"\n' > backends/cpu/aside.h
expect fail dependencies
clean_tree
echo '// TO''DO: later' >> autograd/tape.cpp
expect fail words
clean_tree
echo 'const char* kPath = "/nowhere/of/mine";' >> autograd/tape.cpp
expect fail words
clean_tree
echo 'TEST_CASE("x") { CHECK(true); }' > tests/x_test.cpp
expect fail words
clean_tree
printf '# A page\n[top](#a-page) [tape](../autograd/tape.h) [out](https://example.org)\n' > tests/page.md
expect pass links
echo '[gone](gone.md)' >> tests/page.md
expect fail links
clean_tree
printf '# A page\n[part](#b-page)\n' > tests/page.md
expect fail links
clean_tree
touch autograd/orphan.cpp
expect fail sources
clean_tree
echo 'int x;' > core/unguarded.h
expect fail sources

clean_tree
echo 'static int f(int x) { return x; } int g(int x) { return f(x); }' > a.cpp
"${CXX:-g++}" -c a.cpp -o isa_avx2.cpp.o
expect pass isa_symbols . nm
echo 'template <class T> __attribute__((noinline)) T f(T x) { return x; }
int g(int x) { return f(x); }' > a.cpp
"${CXX:-g++}" -c a.cpp -o isa_avx2.cpp.o
expect fail isa_symbols . nm
rm -f isa_avx2.cpp.o
expect fail isa_symbols . nm

[ $failed -eq 0 ] && echo "every planted fault was found"
exit $failed
