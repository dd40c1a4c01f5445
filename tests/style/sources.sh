#!/usr/bin/env bash
# Every source file is named in the CMakeLists.txt of its directory: lists are explicit, so a file
# left out would never be compiled. Headers start with #pragma once.
. "$(dirname "$0")/common.sh"

orphans=
while IFS= read -r file; do
  directory=$(dirname "$file")
  name=$(basename "$file" .cpp)
  while [ "$directory" != . ] && [ ! -f "$directory/CMakeLists.txt" ]; do
    directory=$(dirname "$directory")
  done
  # isa_NAME.cpp is named by tally_isa_object(NAME ...)
  grep -qE "(^|[ (/])(${name}|${name#isa_})(\.cpp)?([ )]|$)" "$directory/CMakeLists.txt" ||
    orphans+="$file: not in $directory/CMakeLists.txt"$'\n'
done < <(project_files '*.cpp')
report "${orphans%$'\n'}" "sources that nothing compiles"

unguarded=$(project_files '*.h' | xargs grep -LE '^#pragma once' || true)
report "$unguarded" "headers without #pragma once"
verdict
