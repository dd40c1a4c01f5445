# Shared by the style checks: the files of the tree, and the verdict.
set -euo pipefail

# project_files PATTERN...: files of the project that people write, without test data and texts;
# git's list, or what lies there when the sources came as an archive. `*` also matches a slash.
project_files() {
  local pattern
  { if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
      git ls-files --cached --others --exclude-standard -- "$@"
    else
      for pattern in "$@"; do
        find . -path './build*' -prune -o -path "./$pattern" -type f -print
      done | sed 's|^\./||'
    fi; } | sort -u | while IFS= read -r file; do
      case "$file" in tests/data/* | data/corpus/*) continue ;; esac
      if [ -f "$file" ]; then printf '%s\n' "$file"; fi
    done
}

findings=0
# report LINES WHAT: prints the lines and counts them as findings; nothing for no lines.
report() {
  [ -n "$1" ] || return 0
  findings=$((findings + $(printf '%s\n' "$1" | wc -l)))
  printf '%s\n' "$2" "$1"
}

verdict() {
  [ "$findings" -eq 0 ] || { echo "$findings finding(s)"; exit 1; }
  echo "clean"
}
