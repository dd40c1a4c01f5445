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
  if [ "$got" -eq "$code" ] && [ ! -e run ] &&
    { grep -qE "$pattern" err || { [ "$pattern" = '^$' ] && [ ! -s err ]; }; }; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'tally %s: exit %s, wanted %s and /%s/; said: %s\n' "$*" "$got" "$code" "$pattern" "$(tail -1 err)"
  fi
}

expect 2 'did you mean "train"' trian
expect 2 'did you mean --threads' doctor --thread 2
expect 2 'did you mean --tensorboard\?' train llama-smoke --data short.txt --out run --tensorbord
expect 2 'not expected: --zzzzzzzz; `tally' doctor --zzzzzzzz
expect 2 'not expected' models --device cpu
expect 0 '^$' gradcheck transformer-smoke --cases 2 --quiet  # its keys' biases have no gradient
expect 2 'not in range' doctor --threads many
# Numbers that are not finite, that overflow or that make no sense.
expect 2 'not in range: a number' train llama-smoke --data short.txt --out run --max-minutes nan
expect 2 'not in range: a number' train llama-smoke --data short.txt --out run --max-minutes inf
expect 2 'not in range: a number' train llama-smoke --data short.txt --out run --val-fraction nan
expect 2 'not in range: a number' account gpt2 --train --flops-per-s 1e15 --train-tokens nan
expect 2 'not in range: a number' account gpt2 --train --flops-per-s 1e15 --train-tokens 1e9 --mfu nan
expect 2 'not in range: a number' generate gpt2 --temperature nan
expect 1 'a size such as 80GB' account gpt2 --fit inf
expect 1 'a size such as 80GB' account gpt2 --fit nan
expect 1 'a size such as 80GB' account gpt2 --fit 1e300TB
expect 2 'a whole number from 0 to 1000000000$|a whole number from 0 to 1000000000;' generate gpt2 --max-new-tokens 9223372036854775807
expect 2 'a whole number from 0 to 1000000000' generate gpt2 --top-k 99999999999999999999
expect 2 'a whole number from 1 to 1000000000' account gpt2 --batch 9223372036854775807
expect 2 'a whole number from 1 to 1000000000' account gpt2 --seq 0
expect 2 'a whole number from 1 to 1000000000' account gpt2 --devices 0
expect 2 'a whole number from 0' train llama-smoke --data short.txt --out run --seed -1
expect 2 'excludes' account gpt2 --train --decode
expect 0 '^$' account llama-smoke --train --fit 2TB  # ids of meta's batches hold no memory
expect 0 '^$' account gpt2 --decode
expect 0 '^$' account bert-base --train --batch 2
expect 0 '^$' account t5-small --decode
expect 0 '^$' account t5-small --train --set train.recompute=all
expect 1 'an encoder writes no text' account bert-base --decode
expect 1 'leave out --algebra' account t5-small --algebra
expect 1 'the tokenizer has no \[MASK\] or <mask>' train bert-smoke --data "$text" --out run \
  --tokenizer "$here/tests/data/tokenizer/gpt2_1000.tokenizer.json"
expect 1 'mean_span has no meaning for model.architecture = encoder' train bert-smoke --data "$text" --out run --set train.mean_span=2
expect 1 'the model has 0 to 3' train t5-smoke --data "$text" --out run --set train.recompute=4
expect 0 '^$' train bert-base --print-config
expect 1 'an encoder writes no text; leave it out' profile bert-smoke --steps 1 --decode
# Each occurrence of --data takes one value: the preset after it is a preset.
expect 1 'needs more documents' train --data short.txt --out run llama-smoke
expect 2 'subcommand is required' verify layers some
expect 0 '^$' --version
# Bytes that are not UTF-8, and paths that cannot be.
expect 1 'must be UTF-8' account llama-smoke --set $'model.name=\xff'
expect 1 'must be UTF-8' tokenizer train short.txt --vocab-size 300 --special $'\xff' --out run
expect 1 'short.txt/p: cannot make this folder' profile llama-smoke --out short.txt/p
expect 1 'cannot make this folder: File name too long' profile llama-smoke --out "$(printf 'x%.0s' {1..300})"
expect 1 'did you mean "demo"' train dmeo --data short.txt --out run
expect 1 'nofile.txt: cannot open' train llama-smoke --data nofile.txt --out run
expect 1 "./demo.sh writes runs/demo" generate runs/none
expect 1 "is not there or may not be written to" step llama-smoke --html none/page.html
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
types=$here/tests/data/gguf/types.gguf
expect 1 'token_embd.weight is missing' generate "$types" --prompt a
expect 1 'token_embd.weight is missing' import "$types" --out run
expect 1 'neither a Hugging Face directory nor a GGUF file' import short.txt --out run
expect 1 'needs the vocabulary' verify tokenizer "$here/tests/data/tokenizer/bpe_bytes_600.cases.json"
expect 1 'has no "tokenizer"' verify tokenizer "$here/tests/data/models/llama1/config.json"
expect 1 'has no weights' export gpt2 --out exported
expect 1 'did you mean "llama"' export "$here/tests/data/models/qwen3" --out exported --family lama
expect 1 'llama cannot say qk_norm' export "$here/tests/data/models/qwen3" --out exported --family llama
expect 1 'say what to change' convert "$here/tests/data/models/llama1" --out converted
expect 1 'must divide the 3 heads' convert "$here/tests/data/models/llama1" --kv-heads 2 --out converted
expect 1 'is half already' convert "$here/tests/data/models/llama1" --rope half --out converted
expect 1 'not f64' export "$here/tests/data/models/qwen3" --out exported --dtype f64
printf '\2\0\0\0\0\0\0\0{}' > none.safetensors
expect 1 'holds no case of an op' verify ops none.safetensors
expect 1 'is no trace' verify optim none.safetensors
expect 1 'exists already' export "$here/tests/data/models/qwen3" --out .
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
expect 1 'the machine has' step llama-smoke --batch 1000000
expect 2 'not in range' compare llama-smoke llama-smoke --values --tolerance nan
expect 1 'eps must lie between' train llama-smoke --data "$text" --out run --set train.eps=0
expect 1 'got .0x10GB' account gpt2 --fit 0x10GB
expect 1 'one batch does not serve' compare demo llama-smoke --values --seq 8
expect 0 '^$' compare llama-smoke gpt-smoke
expect 1 'there is no preset' compare gpt2 gpt2-mediun
expect 1 'did you mean "norm"' models --table norms
expect 1 'did you mean "Gemma 2"' models --family "Gemma-2"

# Output that does not arrive is an error, whatever printed it.
lost() {
  local got=0
  timeout 60 "$tally" "$@" > /dev/full 2> err < short.txt || got=$?
  if [ "$got" -eq 1 ] && grep -q 'stdout: not all of the output' err; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'tally %s > /dev/full: exit %s; said: %s\n' "$*" "$got" "$(tail -1 err)"
  fi
}
lost --help
lost models
lost account gpt2 --json
lost train llama-smoke --data short.txt --out run --print-config
lost tokenizer encode bytes
lost tokenizer encode bytes --json

# F47: an absurd learning rate is refused; a weight that became NaN on the disk is found before a
# step, by name, and the checkpoint stays as it is. Of a folder without checksums `eval` names it.
expect 1 'lr must lie between 0 and 1000' train llama-smoke --data "$text" --out run --set train.lr=1e30
head -c 30000 "$text" > some.txt
timeout 60 "$tally" train llama-smoke --data some.txt --out nan --steps 2 --val-fraction 0 --quiet > out 2> err
timeout 60 "$tally" export nan --out nan-hf > out 2> err
weights=nan/$(cat nan/latest)/model.safetensors
for file in "$weights" nan-hf/model.safetensors; do
  printf '\0\0\300\177' |
    dd of="$file" bs=1 seek=$(($(stat -c %s "$file") - 4)) conv=notrunc status=none
done
sum=$(cksum "$weights")
got=0
timeout 60 "$tally" train --resume nan --steps 4 --quiet > out 2> err || got=$?
if [ "$got" -eq 1 ] && grep -q 'is damaged: .* has CRC-32C' err && [ "$(cksum "$weights")" = "$sum" ]; then
  passed=$((passed + 1))
else
  echo "a NaN weight: exit $got; said: $(tail -1 err)"; failed=$((failed + 1))
fi

# What a run's directory holds is checked: file and field are named.
same() {  # NAME CONDITION...: a plain check
  local name=$1
  shift
  if "$@"; then passed=$((passed + 1)); else echo "$name"; failed=$((failed + 1)); fi
}
timeout 60 "$tally" train llama-smoke --data some.txt --out base --steps 4 --quiet > out 2> err
lost generate base --prompt a
lost generate base --prompt a --json
expect 0 '^$' generate base --prompt $'\xff' --max-new-tokens 3 --json
expect 0 '^$' generate base --prompt a --max-new-tokens 0
# damage FILE TEXT PATTERN: report must refuse the run with this file in it.
damage() {
  rm -rf damaged
  cp -r base damaged
  printf '%s\n' "$2" > "damaged/$1"
  expect 1 "$3" report damaged
  ! grep -q 'json.exception' err || { echo "$1: a raw exception"; failed=$((failed + 1)); }
}
damage config.json '{"model":3}' 'config.json: model: must be an object'
damage config.json '{"model":{"name":3}}' 'config.json: name must be a text|config.json: model: name must be a text'
damage env.json '[1]' 'env.json: must be an object'
damage metrics.jsonl '{"step":"a"}' 'metrics.jsonl: line 1: step must be a whole number; it is string'
damage samples.jsonl '{"step":1,"text":[]}' 'samples.jsonl: line 1: text must be a text; it is array'
damage ledger.json '{"calls":[1]}' 'ledger.json: calls\[0\]: must be an object'
damage ledger.json '{"calls":[{"op":"a","seconds":"b"}]}' 'ledger.json: calls\[0\]: seconds must be a number'
damage ledger.json '{"calls":{}}' 'ledger.json: calls must be a list'
echo '{"data":[1],"device":1}' > damaged/env.json
expect 1 'env.json: data must be a list of file names' eval damaged
# A changed text is noted; a NaN weight ends in an error that names it.
expect 0 '^$' eval base
cp some.txt kept.txt
sed -i '1s/.*/Another beginning/' some.txt
expect 0 'some.txt changed since this run was trained' eval base
mv kept.txt some.txt
expect 1 'the loss is .*the first bad weight is ' eval nan-hf --data some.txt
# One JSON document on stdout, whatever the verb.
hf=$here/tests/data/models/llama1
document() {
  expect 0 '^$' "$@" --json
  same "tally $*: no JSON document" test "$(head -1 out)$(tail -1 out)" = '{}'
}
document report base
document import "$hf" --inspect
document import "$types" --inspect
tokens=$here/tests/data/tokenizer
for name in gpt2_1000 llama3_1200 smollm_900 unigram_kjv_2000 bpe_bytes_600; do
  expect 0 '^$' verify tokenizer "$tokens/$name.cases.json" --tokenizer "$tokens"
done
expect 0 '^$' verify tokenizer "$tokens/toy_290_gpt2.json" "$tokens/pretok.json"
same "verify tokenizer: another vocabulary passes" bash -c \
  '! "$0" verify tokenizer "$1/bpe_bytes_600.cases.json" --tokenizer "$1/unigram_kjv_2000.model" > out' "$tally" "$tokens"
document import "$hf" --out imported
document export imported --out exported --verify
document convert imported --kv-heads 1 --out pooled
expect 1 'give --data FILE' step imported --batch 1 --seq 4
# Encoders and encoder-decoders train, go on and are evaluated as decoders are.
for preset in bert-smoke t5-v1.1-smoke; do
  expect 0 '^$' train "$preset" --data some.txt --out "parts-$preset" --steps 3 --quiet --set train.warmup=2 --set train.schedule=constant
  expect 0 '^$' eval "parts-$preset" --quiet
  expect 1 'was trained with another objective' train --resume "parts-$preset" --steps 4 --quiet --set train.corruption=0.3
  expect 0 '^$' train --resume "parts-$preset" --steps 4 --quiet
done
document generate parts-bert-smoke --prompt 'In the [MASK]eginning'
document generate parts-t5-v1.1-smoke --prompt 'In the <extra_id_0>ginning' --max-new-tokens 5
expect 0 '^$' generate parts-t5-v1.1-smoke --prompt 'In the beginning' --greedy --max-new-tokens 5 --quiet
expect 1 'the prompt has none; put \[MASK\]' generate parts-bert-smoke --prompt 'In the beginning'
expect 1 'leave --stop and --stats away' generate parts-bert-smoke --prompt '[MASK]' --stop a
expect 1 'no text to read' generate parts-t5-v1.1-smoke --prompt ''
# Encoders and encoder-decoders come in and go out as decoders do; what is for decoders says so.
for name in bert marian mt5 t5_v1_0 t5_v1_1; do
  document import "$here/tests/data/models/$name" --inspect
  document import "$here/tests/data/models/$name" --out "$name"
  document export "$name" --out "$name-hf" --verify
done
document export "$here/tests/data/models/transformer_2017_ref" --family transformer_2017_ref --out original-hf --verify
expect 1 'gpt2 cannot say .*architecture = "encoder"' export bert --out other-hf --family gpt2
expect 1 'has model.architecture = encoder, and this is for decoders' convert bert --kv-heads 1 --out other
for model in bert t5_v1_1; do
  expect 0 '^$' step "$here/tests/data/models/$model" --batch 1 --seq 8 --quiet
  expect 0 '^$' compare "$here/tests/data/models/$model" "$here/tests/data/models/$model" --values --batch 1 --seq 8 --quiet
done
expect 1 'one batch does not serve both' compare llama-smoke bert-smoke --values --batch 1 --seq 8
document convert base --kv-heads 1 --out fewer
expect 0 '^$' step fewer --text 'a short text' --quiet
expect 0 '^$' compare fewer base --values --text 'a short text' --quiet
"$tally" gradcheck logsumexp --json --quiet > out
same "logsumexp: no central differences" grep -q '"checked_by_differences": [0-9][0-9]' out
"$tally" train --help > out
same "the usage does not say tally train" grep -q 'Usage: tally train' out
if timeout 60 "$tally" train llama-smoke --data some.txt --out seldom --steps 2 --quiet \
  --set train.eval_every=0 --set train.checkpoint_every=0 --set train.probes=log_z > out 2> err &&
  grep -q '"probes":{"log_z":{"mean":' seldom/metrics.jsonl; then
  passed=$((passed + 1))
else
  echo "probes without evaluations: $(tail -1 err)"; failed=$((failed + 1))
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

# The same of what writes a whole run at once: nothing stays that would stand in the way of the next try.
for verb in "import $here/tests/data/models/gpt2" "convert $here/tests/data/models/gpt2 --kv-heads 1" \
  "export $here/tests/data/models/gpt2"; do
  # shellcheck disable=SC2086
  if (ulimit -f 64; timeout 60 "$tally" $verb --out whole) > out 2> err; then
    echo "a full disk went unnoticed: $verb"; failed=$((failed + 1))
  elif [ -e whole ] || ! grep -q 'safetensors' err || [ "$(wc -l < err)" -ne 1 ]; then
    echo "a full disk, $verb: $(ls whole 2> /dev/null | tr '\n' ' ')$(cat err)"; failed=$((failed + 1))
  else
    passed=$((passed + 1))
  fi
  rm -rf whole
done
mkdir there && echo mine > there/mine
if (ulimit -f 64; timeout 60 "$tally" import "$here/tests/data/models/gpt2" --out there) > out 2> err ||
  [ "$(ls there)" != mine ]; then
  echo "a full disk, import into a folder: $(ls there)"; failed=$((failed + 1))
fi

# A run that goes on: what it has already may not be given again otherwise, a refusal leaves it as it
# was, and it works without evaluations, checkpoints and a report.
quietly() { timeout 60 "$tally" "$@" > out 2> err < /dev/null; }
if quietly train llama-smoke --data some.txt --out go --steps 12 --quiet --val-fraction 0 \
  --set train.eval_every=0 --set train.checkpoint_every=0 --set train.sample_every=5 &&
  [ "$(wc -l < go/samples.jsonl)" -eq 2 ]; then
  passed=$((passed + 1))
else
  echo "no evaluations, no checkpoints, samples: $(tail -1 err)"; failed=$((failed + 1))
fi
printf 'one cat\tun chat\ntwo cats\tdeux chats\n' > pairs.txt
for model in bert-smoke t5-smoke 'transformer-smoke --data pairs.txt --set train.pairs=true'; do
  data='--data some.txt'
  case $model in *pairs*) data= ;; esac
  if quietly train $model $data --out seen --steps 2 --quiet --val-fraction 0 --set train.sample_every=1 \
    --set train.sample_tokens=4 && [ "$(grep -c '"source":".*"step":[12],"text":"' seen/samples.jsonl)" -eq 2 ] &&
    grep -q -e ' -&gt; ' seen/report.html; then
    passed=$((passed + 1))
  else
    echo "samples of $model: $(tail -1 err)"; failed=$((failed + 1))
  fi
  mv seen "seen-${model%%-*}"
done
for model in bert t5 transformer; do
  case $model in transformer) text=$'one cat\tun chat' ;; *) text='And the cat' ;; esac
  expect 0 '^$' step seen-$model --quiet
  expect 0 '^$' step seen-$model --quiet --text "$text"
done
expect 1 'the line has 0 tabs' step seen-transformer --text 'one cat'
if quietly train transformer-smoke --tokenizer "$here/tests/data/tokenizer/marian" --data pairs.txt --out marian-run \
  --set train.pairs=true --set model.vocab=304 --set model.padding_id=303 --set model.sinusoid_layout=halves \
  --set model.head_bias=true --set train.seq=24 --val-fraction 0 --steps 1 --quiet &&
  quietly export marian-run --out marian-folder --family marian --quiet &&
  quietly import marian-folder --out marian-again --quiet &&
  "$tally" generate marian-run --prompt 'two cats' --greedy --json --max-new-tokens 8 | grep '"text"' > first &&
  "$tally" generate marian-again --prompt 'two cats' --greedy --json --max-new-tokens 8 | grep '"text"' | cmp - first; then
  passed=$((passed + 1))
else
  echo "a Marian folder: $(tail -1 err)"; failed=$((failed + 1))
fi
if quietly train bert-smoke --data some.txt --tokenizer seen-bert --set model.vocab=4000 --out seen --steps 1 \
  --quiet --val-fraction 0 --set train.sample_every=1 && grep -q 'note: no sample: tokenizer: ids must be below' err; then
  passed=$((passed + 1))
else
  echo "a sample of ids without tokens: $(tail -1 err)"; failed=$((failed + 1))
fi
before=$(cat go/config.json)
expect 1 'another model configuration' train --resume go --set model.layers=3 --steps 14
expect 1 'warmup = 10 must not exceed steps = 5' train --resume go --steps 5
expect 1 'has 12 steps already' train --resume go --steps 11
expect 1 'began with seed 1' train --resume go --seed 7
expect 1 'leave --out elsewhere away' train --resume go --out elsewhere
expect 1 'has its own tokenizer' train --resume go --tokenizer x
printf '%s\n\nx\n' "$(head -c 3000 some.txt | tr '\n' ' ')" > parts.txt
expect 1 'the held-out part has' train llama-smoke --data parts.txt --val-fraction 0.5 --out run
expect 1 'meta computes nothing' train llama-smoke --data some.txt --out run --device meta
expect 1 'name the run directory' train llama-smoke --data some.txt
rm -f go/report.html; mkdir go/report.html
if [ "$before" = "$(cat go/config.json)" ] && quietly train --resume go --steps 14 --quiet &&
  grep -q 'note: no report' err; then
  passed=$((passed + 1))
else
  echo "going on after refusals and without a report: $(tail -1 err)"; failed=$((failed + 1))
fi
# Two at once: the second is refused and spoils nothing.
"$tally" train llama-smoke --data some.txt --out both --steps 400 --quiet --val-fraction 0 > /dev/null 2>&1 &
while [ ! -f both/latest ]; do sleep 0.05; done
expect 1 'another training writes into this run' train --resume both --steps 500
kill -INT $! 2>/dev/null || true
wait $! || true
rm -rf both

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
