#!/usr/bin/env python3
"""Optimizers at equal tuning (lecture claims L79, L86, L88, L89).

    bench/compare_optimizers.py [--steps 200] [--seeds 3] [--tally build/tally]

Every optimizer trains llama-smoke at the same number of learning rates, a factor of 2 apart around
a middle that leaves the best one inside, with every seed. Printed for each: the rate whose mean
validation loss is lowest, that mean and its deviation; the state; FLOPs and bytes of the update that
most steps make, and FLOPs of one with new roots or bases, which Shampoo and SOAP make every tenth
step; the time of all steps, forward and backward too, as a multiple of AdamW's (`tally profile`, the
same number of steps, rounds interleaved, median).
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MIDDLE = {"adamw": 4e-3, "lion": 1e-3, "adafactor": 6.4e-2, "sgd": 5.12e-1, "muon": 3.2e-2,
          "soap": 1.6e-2, "shampoo": 1.6e-2}


def run(command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


def loss(tally, optimizer, rate, seed, steps):
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "run"
        done = run([tally, "train", "llama-smoke", "--quiet", "--steps", steps, "--out", out,
                    "--data", ROOT / "data/corpus/king_james.txt",
                    "--set", f"train.optimizer={optimizer}", "--set", f"train.lr={rate}",
                    "--set", f"train.seed={seed}", "--set", f"train.warmup={steps // 10}"])
        if done.returncode:
            if "loss is" in done.stderr or "norm is" in done.stderr or "not finite" in done.stderr:
                return float("inf")
            raise SystemExit(done.stderr)
        lines = [json.loads(l) for l in open(out / "metrics.jsonl")]
        return [l["val_loss"] for l in lines if "val_loss" in l][-1]


def counted(tally, optimizer):
    """FLOPs of the first update, which makes roots and bases, and bytes of state."""
    report = json.loads(run([tally, "account", "llama-smoke", "--train", "--optimizer", optimizer,
                             "--by", "phase", "--json"]).stdout)
    return update_of(report)["flops"], report["memory"]["optimizer"]


def update_of(report):
    return next(p for p in report["by_phase"] if p["key"] == "optimizer")


def profiled(tally, optimizer, steps):
    """Mean seconds of a step, and the update of the fastest one."""
    with tempfile.TemporaryDirectory() as scratch:
        report = json.loads(run([tally, "profile", "llama-smoke", "--steps", steps, "--json", "--out",
                                 scratch, "--set", f"train.optimizer={optimizer}"]).stdout)
    return report["mean_step_seconds"], update_of(report)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--tally", default=ROOT / "build/tally")
    a = p.parse_args()
    jobs = [(o, m * 2.0 ** e, s) for o, m in MIDDLE.items() for e in (-2, -1, 0, 1, 2)
            for s in range(1, a.seeds + 1)]
    found, began = {}, time.time()
    for i, (o, rate, seed) in enumerate(jobs):
        found.setdefault((o, rate), []).append(loss(a.tally, o, rate, seed, a.steps))
        left = (time.time() - began) / (i + 1) * (len(jobs) - i - 1)
        print(f"  {i + 1}/{len(jobs)}, {left:.0f} s left", end="\r", flush=True)
    profiles = {o: [] for o in MIDDLE}
    for _ in range(a.rounds):
        for o in MIDDLE:
            profiles[o].append(profiled(a.tally, o, a.steps))
    print(f"llama-smoke, {a.steps} steps, {a.seeds} seeds, 5 rates each; val loss in nats a token")
    print("| optimizer | rates | best | loss | +- | kB state | kFLOP | with bases | kB moved | time |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for o, middle in MIDDLE.items():
        mean, rate = min((statistics.mean(v), r) for (name, r), v in found.items() if name == o)
        spread = statistics.stdev(found[(o, rate)]) if a.seeds > 1 else 0
        first, state = counted(a.tally, o)
        ratio = statistics.median(t / w for (t, _), (w, _) in zip(profiles[o], profiles["adamw"]))
        update = profiles[o][0][1]
        moved = update["bytes_read"] + update["bytes_written"]
        print(f"| {o} | {middle / 4:g} to {middle * 4:g} | {rate:g} | {mean:.3f} | {spread:.3f} | "
              f"{state / 1e3:.0f} | {update['flops'] / 1e3:.0f} | {first / 1e3:.0f} | "
              f"{moved / 1e3:.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
