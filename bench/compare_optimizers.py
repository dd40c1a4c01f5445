#!/usr/bin/env python3
"""Optimizers at equal tuning (lecture claims L79, L86, L88, L89).

    bench/compare_optimizers.py [--steps 200] [--seeds 3] [--tally build/tally]

Every optimizer trains llama-smoke at the same number of learning rates, a factor of 2 apart around
its customary one, with every seed. Printed for each: the rate whose mean validation loss is lowest,
that mean and its deviation, and of one update the FLOPs, the bytes moved and the state (counted, `tally
account`) and the time (`tally profile`, rounds interleaved, median) as a multiple of AdamW's.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MIDDLE = {"adamw": 4e-3, "lion": 1e-3, "adafactor": 1.6e-2, "sgd": 2.56e-1, "muon": 8e-3,
          "soap": 4e-3, "shampoo": 8e-3}


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
    report = json.loads(run([tally, "account", "llama-smoke", "--train", "--optimizer", optimizer,
                             "--by", "phase", "--json"]).stdout)
    update = next(p for p in report["by_phase"] if p["key"] == "optimizer")
    return (update["flops"], update["bytes_read"] + update["bytes_written"],
            report["memory"]["optimizer"])


def seconds(tally, optimizer):
    with tempfile.TemporaryDirectory() as scratch:
        report = json.loads(run([tally, "profile", "llama-smoke", "--steps", "10", "--json", "--out",
                                 scratch, "--set", f"train.optimizer={optimizer}"]).stdout)
    return next(p for p in report["by_phase"] if p["key"] == "optimizer")["seconds"]


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
    times = {o: [] for o in MIDDLE}
    for _ in range(a.rounds):
        for o in MIDDLE:
            times[o].append(seconds(a.tally, o))
    print(f"llama-smoke, {a.steps} steps, {a.seeds} seeds, 5 rates each; val loss in nats a token")
    print("| optimizer | rates | best | loss | +- | kFLOP | kB moved | kB state | time of AdamW's |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for o, middle in MIDDLE.items():
        mean, rate = min((statistics.mean(v), r) for (name, r), v in found.items() if name == o)
        spread = statistics.stdev(found[(o, rate)]) if a.seeds > 1 else 0
        flops, moved, state = counted(a.tally, o)
        ratio = statistics.median(t / w for t, w in zip(times[o], times["adamw"]))
        print(f"| {o} | {middle / 4:g} to {middle * 4:g} | {rate:g} | {mean:.3f} | {spread:.3f} | "
              f"{flops / 1e3:.0f} | {moved / 1e3:.0f} | {state / 1e3:.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
