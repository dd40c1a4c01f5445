"""Tally's products against PyTorch's (MKL), shape by shape, in one interleaved run.

Both sides are child processes that time one shape at a time (best of 80 ms); rounds alternate, and
the figure is the median over rounds of the ratio. Nothing here fails on a timing.

usage: compare_gemm.py [--threads 2] [--rounds 5] [M,N,K,OP ...]
needs: python3 with torch, and build-bench/gemm_bench (see README.md here)
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KEEP_MEMORY = ("glibc.malloc.mmap_threshold=8589934592:"
               "glibc.malloc.trim_threshold=17179869184:glibc.malloc.hugetlb=1")
SHAPES = """2048,384,384,NT 2048,1152,384,NT 2048,1536,384,NT 2048,384,1536,NT 2048,1024,384,NT
2048,384,1024,NT 2048,256,384,NT 2048,384,1152,NN 2048,1536,384,NN 2048,384,1536,NN 384,384,2048,TN
1152,384,2048,TN 1536,384,2048,TN 384,1536,2048,TN 1024,2304,768,NT 1024,3072,768,NT
1024,768,3072,NT 1024,768,3072,NN 768,768,1024,TN 3072,768,1024,TN 1024,50257,768,NT
1024,768,50257,NN 50257,768,1024,TN 1,384,384,NT 1,3072,768,NT 1,50257,768,NT 8,3072,768,NT
8,50257,768,NT""".split()


def torch_side(threads):
    import torch
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    print(json.dumps({"version": torch.__version__}), flush=True)
    for line in sys.stdin:
        m, n, k, op = line.split()
        m, n, k = int(m), int(n), int(k)
        a = torch.rand(k, m).t() if op[0] == "T" else torch.rand(m, k)
        b = torch.rand(n, k).t() if op[1] == "T" else torch.rand(k, n)
        c, best, end = torch.zeros(m, n), math.inf, time.perf_counter() + 0.08
        while time.perf_counter() < end:
            start = time.perf_counter()
            torch.mm(a, b, out=c)
            best = min(best, time.perf_counter() - start)
        print(json.dumps({"rate": 2 * m * n * k / best}), flush=True)


class Side:
    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env={**os.environ, **environment})
        self.about = json.loads(self.process.stdout.readline())

    def ask(self, request):
        time.sleep(0.3)  # OpenMP threads of the other side spin for 0.2 s after their last product
        self.process.stdin.write(" ".join(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def rate(self, shape):
        return self.ask(shape)["rate"]


def both_sides(program, script, threads):
    """Our program and a script's --torch-side, each told to keep its memory."""
    memory = {"GLIBC_TUNABLES": KEEP_MEMORY}
    return (Side([program, "--peer", "--threads", threads], memory),
            Side([sys.executable, script, "--torch-side", "--threads", threads],
                 {**memory, "OMP_NUM_THREADS": threads}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shapes", nargs="*", default=SHAPES)
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", default=os.path.join(HERE, "..", "build-bench", "gemm_bench"))
    parser.add_argument("--torch-side", action="store_true")
    options = parser.parse_args()
    if options.torch_side:
        return torch_side(int(options.threads))
    ours, theirs = both_sides(options.program, __file__, options.threads)
    peak, all_ratios = ours.about["peak"], []
    print(f"{options.threads} threads, {ours.about['isa']}, peak {peak / 1e9:.0f} GFLOP/s, "
          f"PyTorch {theirs.about['version']}")
    print("| product | Tally GFLOP/s (of peak) | PyTorch | ratio, median (spread) |")
    print("| --- | --- | --- | --- |")
    for text in options.shapes:
        pairs = [(ours.rate(text.split(",")), theirs.rate(text.split(",")))
                 for _ in range(options.rounds)]
        ratios, best = [a / b for a, b in pairs], [max(side) for side in zip(*pairs)]
        all_ratios.append(statistics.median(ratios))
        print(f"| {text} | {best[0] / 1e9:.1f} ({100 * best[0] / peak:.0f} %) | {best[1] / 1e9:.1f} "
              f"({100 * best[1] / peak:.0f} %) | {all_ratios[-1]:.2f} ({min(ratios):.2f} to "
              f"{max(ratios):.2f}) |", flush=True)
    print(f"geometric mean {statistics.geometric_mean(all_ratios):.3f}")


if __name__ == "__main__":
    main()
