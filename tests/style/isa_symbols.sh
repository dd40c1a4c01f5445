#!/usr/bin/env bash
# isa_symbols.sh BUILD_DIR NM: objects compiled for one instruction set hold no weak symbol. The
# linker keeps one copy of a weak function for the whole program, and if that is the AVX-512 one,
# the program dies on a machine without AVX-512 in code that never asked for it.
. "$(dirname "$0")/common.sh"

objects=$(find "$1" -name 'isa_*.cpp.o')
[ -n "$objects" ] || { echo "no isa_*.cpp.o under $1: build the cpu backend first"; exit 1; }
while IFS= read -r object; do
  weak=$("${2:-nm}" -C "$object" | grep -E '^[0-9a-f]* *[WVu] ' | sed 's/^[0-9a-f]* *//' || true)
  report "$weak" "$(basename "$object") has weak symbols (use builtins and simd.h only):"
done <<<"$objects"
verdict
