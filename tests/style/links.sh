#!/usr/bin/env bash
# Links of the pages lead somewhere: a relative link to a file or folder of the tree, and behind a #
# a heading of that page. Code blocks and links to the web are passed over.
. "$(dirname "$0")/common.sh"

# The headings of a page as anchors, one a line.
anchors() {
  awk '/^```/ { code = !code } !code && /^#+ / { sub(/^#+ +/, ""); print tolower($0) }' "$1" |
    sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

broken=
while IFS= read -r page; do
  while IFS=: read -r line target; do
    file=${target%%#*} anchor=
    case "$target" in *#*) anchor=${target#*#} ;; esac
    path=$page
    [ -z "$file" ] || path=$(dirname "$page")/$file
    if [ ! -e "$path" ]; then
      broken+="$page:$line: $target: no such file"$'\n'
    elif [ -n "$anchor" ] && [ -f "$path" ] && ! anchors "$path" | grep -qxF -- "$anchor"; then
      broken+="$page:$line: $target: no such heading"$'\n'
    fi
  done < <(awk '/^```/ { code = !code } { print code ? "" : $0 }' "$page" | sed 's/`[^`]*`//g' |
    grep -noE '\]\([^) ]+\)' | sed -E 's/\]\(([^)]*)\)$/\1/' |
    grep -vE '^[0-9]+:(https?:|mailto:)' || true)
done < <(project_files '*.md')
report "${broken%$'\n'}" "links that lead nowhere"
verdict
