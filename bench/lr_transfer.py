#!/usr/bin/env python3
"""Which learning rate is best at which width, with and without muP (lecture claim L85).

    bench/lr_transfer.py [--steps 200] [--widths 64,128,256] [--rates 0.001,...] [--seeds 1]

Trains build/tally's llama-smoke at every width and rate, prints the validation loss in nats a token
as two tables, and the rate that is best in each row.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TALLY = ROOT / "build/tally"


def loss(tally, out, width, rate, steps, seed, mup):
    """Validation loss of one training; None where it stopped with numbers that are not finite."""
    sets = [f"model.d_model={width}", f"model.heads={width // 32}", f"model.kv_heads={width // 32}", "model.head_dim=32",
            f"model.d_ff={width * 5 // 2}", f"train.lr={rate}", f"train.seed={seed}",
            f"train.warmup={steps // 10}", f"model.mup_base_width={mup}"]
    command = [tally, "train", "llama-smoke", "--quiet", "--steps", str(steps),
               "--data", ROOT / "data/corpus/king_james.txt", "--out", out]
    for s in sets:
        command += ["--set", s]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        if "loss is" in done.stderr or "not finite" in done.stderr or "norm is" in done.stderr:
            return None
        raise SystemExit(done.stderr)
    lines = [json.loads(l) for l in open(out / "metrics.jsonl")]
    return [l["val_loss"] for l in lines if "val_loss" in l][-1]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--widths", default="64,128,256")
    p.add_argument("--rates", default="0.001,0.002,0.004,0.008,0.016,0.032")
    p.add_argument("--seeds", type=int, default=1)
    p.add_argument("--tally", default=TALLY, help="the program, if it is not build/tally")
    a = p.parse_args()
    widths, rates = [int(w) for w in a.widths.split(",")], [float(r) for r in a.rates.split(",")]
    total, done, began = 2 * len(widths) * len(rates) * a.seeds, 0, time.time()
    for mup in (0, widths[0]):
        print(f"\n{'muP from ' + str(mup) if mup else 'without muP'}, {a.steps} steps")
        print("d_model | " + " | ".join(f"{r:g}" for r in rates) + " | best")
        for w in widths:
            row = []
            for r in rates:
                found = []
                for seed in range(1, a.seeds + 1):
                    with tempfile.TemporaryDirectory() as scratch:
                        found.append(loss(a.tally, pathlib.Path(scratch) / "run", w, r, a.steps, seed, mup))
                    done += 1
                    left = (time.time() - began) / done * (total - done)
                    print(f"  {done}/{total}, {left:.0f} s left", end="\r", flush=True)
                row.append(None if None in found else sum(found) / len(found))
            best = min((x, r) for x, r in zip(row, rates) if x is not None)[1]
            cells = ["stopped" if x is None else f"{x:.3f}" for x in row]
            print(f"{w} | " + " | ".join(cells) + f" | {best:g}")


if __name__ == "__main__":
    main()
