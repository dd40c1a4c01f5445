#!/bin/sh
# Makes king_james.txt from Debian's bible-kjv: one verse a line, references cut off, chapters
# parted by an empty line.  Usage: apt-get install bible-kjv; ./make_king_james.sh > king_james.txt
set -eu
bible -f Gen1:1-Rev22:21 | awk '
  { colon = index($1, ":"); chapter = substr($1, 1, colon - 1); sub(/^[^ ]+ /, "")
    if (NR > 1 && chapter != previous) print ""
    previous = chapter; print }'
