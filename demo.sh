#!/usr/bin/env bash
# From a fresh clone to a trained model that talks: installs what is missing (Debian 12, root or
# sudo), builds, trains the `demo` preset on the King James text, and samples from it. Asks
# nothing. Run again, it goes on where it stopped; a finished run is only shown.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

run=runs/demo
corpus=data/corpus/king_james.txt
say() { printf '\n== %s\n' "$*"; }

say "Packages"
tools/install_packages.sh build

say "Build (build/tally)"
cmake --preset release >/dev/null
cmake --build build --target tally --parallel "$(nproc)"

say "Train ($run)"
if [ -f "$run/latest" ]; then
  build/tally train demo --data "$corpus" --out "$run" --resume "$run"
else
  # Without `latest` no checkpoint was ever completed, so there is nothing to go on from.
  rm -rf "$run"
  build/tally train demo --data "$corpus" --out "$run"
fi

say "Sample"
build/tally generate "$run" --prompt "And God said" --max-new-tokens 120 --temperature 0.8 \
  --top-k 40 --seed 1

say "Where everything lies"
cat <<TEXT
  build/tally                     the program; build/tally --help lists what it can do
  $run                       the run: config.json, metrics.jsonl, tokenizer.json, checkpoints/
  $run/report.html           its page for a browser: curves, samples, where FLOPs, bytes and time went
  $corpus      the text it was trained on

  build/tally generate $run --prompt "In the beginning"
  build/tally eval $run --data $corpus
  rm -rf $run && ./demo.sh     trains from the start
TEXT
