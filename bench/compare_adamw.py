#!/usr/bin/env python3
"""Steps of the fused AdamW against PyTorch's and against the speed of memory, in one interleaved run.

    compare_adamw.py [--threads 2] [--rounds 5] [--program build-bench/adamw_step] [PARAMETERS ...]

Both sides are child processes that step one f32 tensor at a time; rounds alternate, figures are
medians of the rounds' ratios. A step moves 28 bytes a parameter; the bound moves the same bytes of
the same arrays. Needs python3 with torch. Nothing here fails on a timing.
"""
import argparse
import json
import os
import statistics
import sys
import time

from compare_gemm import both_sides


def torch_side(threads):
    import torch
    torch.set_num_threads(threads)
    print(json.dumps({"version": torch.__version__}), flush=True)
    for line in sys.stdin:
        w = torch.full((int(line),), 0.5, requires_grad=True)
        w.grad = torch.full_like(w, 0.01)
        adamw = torch.optim.AdamW([w], lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
        adamw.step()
        best, end = float("inf"), time.perf_counter() + 0.4
        while time.perf_counter() < end:
            start = time.perf_counter()
            adamw.step()
            best = min(best, time.perf_counter() - start)
        print(json.dumps({"rate": int(line) / best}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parameters", nargs="*", type=int, default=[1 << 16, 1 << 20, 1 << 25])
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", default=os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "..", "build-bench", "adamw_step"))
    parser.add_argument("--torch-side", action="store_true")
    o = parser.parse_args()
    if o.torch_side:
        return torch_side(int(o.threads))
    ours, theirs = both_sides(o.program, __file__, o.threads)
    print(f"{o.threads} threads, {ours.about['isa']}, PyTorch {theirs.about['version']}, fused AdamW")
    print("| parameters | Tally, million/s | of the bound, median (spread) | PyTorch | ratio, median "
          "(spread) |")
    print("| --- | --- | --- | --- | --- |")
    for n in o.parameters:
        pairs = [(ours.ask([str(n)]), theirs.ask([str(n)])) for _ in range(o.rounds)]
        bound = [a["rate"] / a["bound"] for a, _ in pairs]
        ratio = [a["rate"] / b["rate"] for a, b in pairs]
        spread = lambda v: f"{statistics.median(v):.2f} ({min(v):.2f} to {max(v):.2f})"
        print(f"| {n} | {max(a['rate'] for a, _ in pairs) / 1e6:.0f} | {spread(bound)} | "
              f"{max(b['rate'] for _, b in pairs) / 1e6:.0f} | {spread(ratio)} |", flush=True)


if __name__ == "__main__":
    main()
