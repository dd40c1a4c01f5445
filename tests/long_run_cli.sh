#!/usr/bin/env bash
# Training at length by the command line: evaluation sets, early stop, the best model, many files, a
# branch of a trunk, and what is refused of them. usage: long_run_cli.sh PATH_OF_TALLY
set -euo pipefail
tally=$1
corpus=$(cd "$(dirname "$0")/.." && pwd)/data/corpus/king_james.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
head -c 60000 "$corpus" > a.txt
tail -c 20000 "$corpus" > b.txt
tail -c 60000 "$corpus" > c.txt
failed=0
wrong() { echo "FAILED: $*: $(tail -2 err)"; failed=$((failed + 1)); }
run() { timeout 60 "$tally" train "$@" > out 2> err < /dev/null; }
refuses() {
  local pattern=$1
  shift
  if run "$@" || ! grep -qE "$pattern" err || [ -e no ]; then wrong "not refused: $*"; fi
}
small=(llama-smoke --set train.warmup=0 --set train.eval_batches=1 --set train.log_every=5)

# Several sets, in every line, with the best kept.
run "${small[@]}" --data a.txt --eval end=b.txt --eval other=a.txt --out sets --steps 20 --tensorboard \
  --set train.eval_every=5 --set train.keep_best=true || wrong "evaluation sets"
[ "$(grep -c 'eval/end/loss.*eval/other/loss.*val_loss' sets/metrics.jsonl)" -eq 5 ] || wrong "sets logged"
grep -q 'end [0-9.]*  other' err || wrong "live line: $(cat err)"
grep -qa 'eval/end/loss' sets/tb/* || wrong "TensorBoard"
[ "$(cat sets/best)" = checkpoints/step-20 ] || wrong "best: $(cat sets/best)"
"$tally" eval sets/best --json > best.json && "$tally" eval sets --json > newest.json &&
  cmp best.json newest.json || wrong "eval RUN/best"
run --resume sets --steps 25 --quiet || wrong "resuming with sets"
grep -q '"step":25.*' sets/metrics.jsonl && grep -q 'eval/other/loss.*"final":true' sets/metrics.jsonl ||
  wrong "sets are known after a resume"

# Nothing gets better: stops after two evaluations beyond the first, and stays stopped.
run "${small[@]}" --data a.txt --out early --steps 100 --set train.eval_every=4 --set train.patience=2 \
  --set train.min_delta=100 || wrong "early stop"
[ "$(cat early/latest)" = checkpoints/step-12 ] || wrong "stopped at $(cat early/latest)"
grep -q 'early stop: no lower loss in 2 evaluations; best: .* after step 4' out || wrong "$(cat out)"
run --resume early || wrong "resuming after an early stop"
[ "$(cat early/latest)" = checkpoints/step-12 ] && grep -q 'stopped early' err || wrong "went on"
run --resume early --set train.patience=3 --quiet || wrong "more patience"
[ "$(cat early/latest)" = checkpoints/step-16 ] || wrong "patience 3 stopped at $(cat early/latest)"

# A trunk, its branch, and the run that was planned so.
run "${small[@]}" --data a.txt --out trunk --steps 20 --quiet --set train.schedule=wsd \
  --set train.decay_fraction=0 || wrong "trunk"
run --branch trunk --out branch --steps 25 --quiet --set train.decay_fraction=0.2 || wrong "branch"
run "${small[@]}" --data a.txt --out whole --steps 25 --quiet --set train.schedule=wsd \
  --set train.decay_fraction=0.2 || wrong "whole"
for file in model optimizer; do
  cmp {branch,whole}/checkpoints/step-25/$file.safetensors || wrong "the branch differs"
done
[ "$(cat trunk/latest)" = checkpoints/step-20 ] || wrong "the trunk changed"
run --branch branch/checkpoints/step-20 --out twig --steps 30 --quiet || wrong "a branch of a branch"

# Token files by folder and pattern; a text with another tokenizer's tokens is no evaluation set.
mkdir shards
printf '{"model": {"layers": 1, "d_model": 16, "heads": 2, "vocab": 257, "context": 32}}' > tiny.json
for part in a b; do
  "$tally" data prepare $part.txt --tokenizer sets --out made > /dev/null 2>&1
  for end in npy json; do mv made/train.$end shards/$part.$end; done
done
for data in shards 'shards/*.npy'; do
  rm -rf many
  run "${small[@]}" --data "$data" --tokenizer sets --out many --steps 2 --quiet || wrong "$data"
done

refuses 'is there already' "${small[@]}" --data a.txt --eval x=b.txt --eval x=a.txt --out no
refuses 'val is what is held out' "${small[@]}" --data a.txt --eval val=b.txt --out no
refuses 'needs a name' "${small[@]}" --data a.txt --eval b.txt --out no
refuses 'none.txt' "${small[@]}" --data a.txt --eval x=none.txt --out no
refuses 'there is none; hold' "${small[@]}" --data a.txt --val-fraction 0 --set train.patience=1 --out no
refuses 'train on one kind' "${small[@]}" --data a.txt --data shards --out no
refuses 'choose one' --branch trunk --resume trunk --out no
refuses 'has 20 steps already' --branch trunk --out no --steps 20
refuses 'was trained with another training data' --branch trunk --out no --steps 30 --data c.txt
refuses 'there is no such checkpoint' --branch trunk/checkpoints/step-7 --out no --steps 30
refuses 'is not a run' --branch llama-smoke --out no
refuses 'keeps no best checkpoint' --branch trunk/best --out no
refuses 'momentum was set, and nothing would read it' "${small[@]}" --data a.txt --out no --set train.momentum=0.5
[ "$failed" -eq 0 ] && echo "all as it should be"
