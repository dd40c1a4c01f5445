#!/usr/bin/env bash
# Bad input of every verb ends in one clear line on stderr and exit code 1 (2: wrong usage), and
# writes nothing. usage: cli_test.sh PATH_OF_TALLY
set -euo pipefail
tally=$1
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
text=$here/data/corpus/king_james.txt
: > empty.txt
echo "a short text" > short.txt
echo '{"model": {"layers": "two"}}' > bad.json
failed=0 passed=0

# expect CODE PATTERN ARGUMENTS...: what the command must exit with and say on stderr.
expect() {
  local code=$1 pattern=$2 got=0
  shift 2
  timeout 60 "$tally" "$@" > out 2> err < /dev/null || got=$?
  if [ "$got" -eq "$code" ] && grep -qE "$pattern" err && [ ! -e run ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'tally %s: exit %s, wanted %s and /%s/; said: %s\n' "$*" "$got" "$code" "$pattern" "$(tail -1 err)"
  fi
}

expect 2 'did you mean "train"' trian
expect 2 'not in range' doctor --threads many
expect 1 'did you mean "demo"' train dmeo --data short.txt --out run
expect 1 'nofile.txt: cannot open' train llama-smoke --data nofile.txt --out run
expect 1 'it is empty' train llama-smoke --data empty.txt --out run
expect 1 'needs more documents' train llama-smoke --data short.txt --out run
# F44
expect 1 'at least [0-9]+ tokens|needs .* tokens|must hold' train llama-smoke --data short.txt --val-fraction 0 --out run
expect 1 'did you mean "heads"' train llama-smoke --data "$text" --out run --set model.heds=3
# F27
expect 1 'must be a multiple of heads = 3' train llama-smoke --data "$text" --out run --set model.heads=3
expect 1 'layers' train bad.json --data "$text" --out run
expect 1 'with --data' train llama-smoke --out run
expect 1 'no such run directory' train --resume nowhere
# F32
expect 1 'trains in f32 or f64; got bf16' train llama-smoke --data "$text" --out run --dtype bf16
expect 1 'must be one of reference, cpu, meta' train llama-smoke --data "$text" --out run --device gpu
expect 1 'cannot make this folder' train llama-smoke --data "$text" --out /proc/run
expect 1 'no preset, file or folder' eval nowhere
expect 1 'no preset, file or folder' generate nowhere --prompt a
expect 1 'has no weights' generate gpt2 --prompt a
expect 1 'did you mean' models gtp2
expect 1 'a size such as 80GB' account gpt2 --fit 3XB
expect 1 'do not fit the context' account gpt2 --seq 5000
expect 1 'did you mean "rope"' gradcheck nope
expect 1 'case.safetensors' verify model "$work"
expect 1 'at least 8 bytes' import empty.txt --inspect
expect 1 'choose 257 or more' tokenizer train short.txt --vocab-size 10 --out run
expect 1 'no such file or folder' tokenizer info nofile
expect 1 'whole numbers' tokenizer decode bytes 1 x
expect 1 'give --dtype' data inspect short.txt
expect 1 'did you mean "log_z"' train llama-smoke --data "$text" --out run --set train.probes=log_y
expect 1 'no preset, file or folder' step nowhere
expect 1 'no call of this step is named gaet' step llama-smoke --batch 1 --seq 8 --op gaet
expect 1 'no call of this step is in block' step llama-smoke --batch 1 --seq 8 --module block9
expect 1 'the step has calls 1 to' step llama-smoke --batch 1 --seq 8 --from 9999
expect 1 'do not fit the context' step llama-smoke --seq 99999
expect 1 'meta computes no values' step llama-smoke --device meta
expect 1 'needs a tokenizer' step demo --batch 1 --seq 8 --text "a text"
expect 1 'at least 2 tokens' step llama-smoke --text a
expect 1 'choose one of --text and --data' step llama-smoke --text ab --data short.txt
expect 1 'one batch does not serve' compare demo llama-smoke --values --seq 8
expect 1 'is not the directory of a run' compare llama-smoke gpt-smoke

# F47: an absurd learning rate is refused; a weight that is NaN stops the run before an update, with
# its step and name, and the checkpoint stays as it is.
expect 1 'lr must lie between 0 and 1000' train llama-smoke --data "$text" --out run --set train.lr=1e30
head -c 30000 "$text" > some.txt
timeout 60 "$tally" train llama-smoke --data some.txt --out nan --steps 2 --val-fraction 0 --quiet > out 2> err
weights=nan/$(cat nan/latest)/model.safetensors
printf '\0\0\300\177' |
  dd of="$weights" bs=1 seek=$(($(stat -c %s "$weights") - 4)) conv=notrunc status=none
sum=$(cksum "$weights")
got=0
timeout 60 "$tally" train --resume nan --steps 4 --quiet > out 2> err || got=$?
if [ "$got" -eq 1 ] && grep -q 'step 3: the loss is .*the first bad weight is .*not finite is in .*its inputs: ' err &&
  [ "$(cksum "$weights")" = "$sum" ]; then
  passed=$((passed + 1))
else
  echo "a NaN weight: exit $got; said: $(tail -1 err)"; failed=$((failed + 1))
fi

# 0 steps between evaluations or checkpoints: only at the end.
if timeout 60 "$tally" train llama-smoke --data some.txt --out seldom --steps 2 --quiet \
  --set train.eval_every=0 --set train.checkpoint_every=0 --set train.probes=log_z > out 2> err &&
  grep -q '"probes":{"log_z":{"mean":' seldom/metrics.jsonl; then
  passed=$((passed + 1))
else
  echo "no evaluations between: $(tail -1 err)"; failed=$((failed + 1))
fi
"$tally" step seldom --batch 1 --seq 8 --html step.html > out 2> err && grep -q '<details class="call">' step.html &&
  "$tally" compare seldom seldom --values --seq 8 2> err | grep -q 'ops agree, forward and backward' &&
  passed=$((passed + 1)) || { echo "a step of a run: $(tail -1 err)"; failed=$((failed + 1)); }

# F45: a full disk: nothing is lost, and the reason is named. A limit on file size stands for it.
if (ulimit -f 64; timeout 60 "$tally" train llama-smoke --data "$text" --out full --steps 1 --quiet) > out 2> err; then
  echo "a full disk went unnoticed"; failed=$((failed + 1))
else
  passed=$((passed + 1))
fi
[ ! -f full/latest ] || { echo "a checkpoint was named that was never whole"; failed=$((failed + 1)); }

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
