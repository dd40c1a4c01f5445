#!/usr/bin/env bash
# Nothing half done and nothing of one machine: left-behind marks, and absolute paths other than
# those every Linux has.
. "$(dirname "$0")/common.sh"

files=$(project_files '*.h' '*.cpp' '*.cu' '*.cuh' '*.txt' '*.cmake' '*.sh' '*.py' '*.md' '*.json' |
  grep -v '^tests/style/')

marks=$(printf '%s\n' "$files" |
  xargs grep -nHE '\b(TODO|FIXME|XXX|HACK)\b|[Nn]ot implemented|[Uu]nimplemented' || true)
report "$marks" "left-behind marks: do it, or leave it out"

paths=$(printf '%s\n' "$files" |
  xargs grep -noHE "(^|[][ \"'\`(=<])/[a-z]+/[A-Za-z0-9_.-]+" |
  grep -vE "/(usr|proc|sys|dev|etc|tmp)/[A-Za-z0-9_.-]+$" || true)
report "$paths" "paths of one machine"

empty_tests=$(project_files 'tests/*.cpp' |
  xargs grep -nHE 'CHECK\(true\)|REQUIRE\(true\)|SUCCEED\(|"\[\.' || true)
report "$empty_tests" "tests that assert nothing or hide"
verdict
