#!/usr/bin/env bash
# run.sh BUILD: the commands of the tour against the program in the build folder BUILD. Blocks
# fenced as `sh` under a line `<!-- quick -->` are run, each in a fresh folder that looks like a
# clone without runs; of all blocks the verbs and options must be those of the program's help. The
# table of claims must be complete.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0 ran=0 read=0
complain() { failed=$((failed + 1)); printf '%s\n' "$*"; }

# The blocks of a page as files NUMBER.quick and NUMBER.read in the folder $2.
blocks() {
  awk -v folder="$2" '
    /^```sh$/ { kind = quick ? "quick" : "read"; file = sprintf("%s/%02d.%s", folder, ++n, kind)
                printf "" > file; inside = 1; next }
    /^```/ { if (inside) close(file); inside = 0 }
    inside { print > file; next }
    NF { quick = $0 == "<!-- quick -->" }' "$1"
}

# help VERB [SUBCOMMAND]: what the program says of it, asked once.
help() {
  local kept="$scratch/help-${1}${2:+-$2}"
  [ -f "$kept" ] || "$build/tally" "$@" --help > "$kept" 2>&1 || { rm -f "$kept"; return 1; }
  cat "$kept"
}

# Every command of the file names a verb and options that exist.
check_words() {
  local page=$1 line verb option known
  bash -n "$2" || complain "$page: not a shell script: $2"
  while IFS= read -r line; do
    verb=$(printf '%s\n' "$line" | cut -d' ' -f2)
    case "$verb" in verify | tokenizer | data) verb+=" $(printf '%s\n' "$line" | cut -d' ' -f3)" ;; esac
    # shellcheck disable=SC2086  # a verb may be two words
    known=$(help $verb) || { complain "$page: no such verb: $verb"; continue; }
    for option in $(printf '%s\n' "$line" | grep -oE ' --[a-z-]+' || true); do
      grep -qE -- "$option\b" <<<"$known" || complain "$page: tally $verb has no $option"
    done
  done < <(sed -e ':a' -e '/\\$/{N;s/\\\n *//;ba' -e '}' "$2" |
    grep -oE 'build/tally [^|;&>]*' | sed 's/"[^"]*"/TEXT/g' || true)
}

tour=$root/docs/tour
for page in "$tour"/*.md; do
  name=docs/tour/$(basename "$page")
  folder=$scratch/$(basename "$page" .md)
  mkdir "$folder"
  blocks "$page" "$folder"
  for block in "$folder"/*.quick "$folder"/*.read; do
    [ -f "$block" ] || continue
    read=$((read + 1))
    check_words "$name" "$block"
    [ "${block##*.}" = quick ] || continue
    clone=$block.clone
    mkdir "$clone"
    ln -s "$build" "$clone/build"
    ln -s "$root/data" "$root/tests" "$root/docs" "$clone"
    ran=$((ran + 1))
    (cd "$clone" && timeout 60 bash -euo pipefail "$block") > "$block.out" 2>&1 < /dev/null ||
      complain "$name: this block fails:" "$(cat "$block")" "it said:" "$(tail -5 "$block.out")"
  done
done
# The table of claims has all of them, once, in order.
claims=$root/docs/claims.md
[ "$(grep -oE '^\| L[0-9]+ ' "$claims" | tr -d '| L')" = "$(seq 103)" ] ||
  complain "docs/claims.md: the lines are not L1 to L103, in order"
unsure=$(grep -E '^\| L[0-9]' "$claims" | grep -vE '\| (\*\*(shown|part)\*\*: .+|open: .+) \|$' || true)
[ -z "$unsure" ] || complain "docs/claims.md: neither shown, part nor open:" "$unsure"

[ "$ran" -ge 10 ] || complain "only $ran blocks ran: are they still marked <!-- quick -->?"
echo "$read blocks, $ran run, $failed problem(s)"
[ "$failed" -eq 0 ]
