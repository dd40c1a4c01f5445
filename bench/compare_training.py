"""Tally against PyTorch, one training step, in one interleaved run.

Both sides start as child processes with the same weights; the losses of the first steps are
compared; then rounds of a few steps alternate, A B B A A B ..., and what counts is the median over
rounds of the ratio of their times. Nothing here fails on a timing.

usage: compare_training.py tiny-gpt tiny-llama [--modes eager compile] [--rounds 7]
needs: python3 with torch, numpy and safetensors, and build-bench/train_step (see README.md here)
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# PyTorch returns every large block to the kernel and faults it in again; told to keep them, with
# large pages, it is up to twice as fast. The tuned one is the honest peer.
KEEP_MEMORY = ("glibc.malloc.mmap_threshold=8589934592:"
               "glibc.malloc.trim_threshold=17179869184:glibc.malloc.hugetlb=1")


class Side:
    """A child process that answers one JSON line to one command line."""

    def __init__(self, name, command, environment=None):
        self.name = name
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **(environment or {})})
        self.about = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name}: ended with code {self.process.wait()}")
        reply = json.loads(line)
        if "error" in reply:
            sys.exit(f"{self.name}: {reply['error']}")
        return reply

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def cpu_name():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return f"{names[0]}, {len(names)} threads"


def compare_losses(ours, theirs, steps):
    """The same weights and batches must give the same losses: else the times mean nothing."""
    with tempfile.TemporaryDirectory() as directory:
        theirs.ask(f"save {directory}")
        ours.ask(f"load {directory}")
    a, b = ours.ask(f"run {steps}")["losses"], theirs.ask(f"run {steps}")["losses"]
    worst = max(abs(x - y) / abs(y) for x, y in zip(a, b))
    print(f"  losses of {steps} steps: {ours.name} {a[0]:.6f} .. {a[-1]:.6f}, "
          f"{theirs.name} {b[0]:.6f} .. {b[-1]:.6f}, worst relative difference {worst:.1e}")
    return worst


def compare(model, mode, options):
    threads = str(options.threads)
    theirs = Side("torch", [options.python, os.path.join(HERE, "train_torch.py"), model, mode,
                            "--threads", threads], {"GLIBC_TUNABLES": KEEP_MEMORY})
    ours = Side("tally", [options.program, model, "--threads", threads])
    print(f"{model}: tally against {theirs.about['peer']}, {threads} threads, f32, "
          f"{ours.about['tokens_per_step']} tokens a step")
    if ours.about["parameters"] != theirs.about["parameters"]:
        sys.exit(f"parameters differ: {ours.about['parameters']}, {theirs.about['parameters']}")
    worst = compare_losses(ours, theirs, options.warm_up)

    ratios, best = [], {"tally": float("inf"), "torch": float("inf")}
    for number in range(options.rounds):
        median = {}
        for side in (ours, theirs) if number % 2 == 0 else (theirs, ours):
            seconds = side.ask(f"run {options.steps}")["seconds"]
            median[side.name] = statistics.median(seconds)
            best[side.name] = min(best[side.name], *seconds)
        ratios.append(median["torch"] / median["tally"])
    memory = {side.name: side.ask("rss") for side in (ours, theirs)}
    for side in (ours, theirs):
        side.close()
    return dict(model=model, mode=mode, peer=theirs.about["peer"], cpu=cpu_name(),
                threads=options.threads, speed_ratio_median=statistics.median(ratios),
                speed_ratio_min=min(ratios), speed_ratio_max=max(ratios), rounds=len(ratios),
                loss_difference=worst,
                tally_tokens_per_s=ours.about["tokens_per_step"] / best["tally"],
                torch_tokens_per_s=ours.about["tokens_per_step"] / best["torch"],
                tally_peak_mb=memory["tally"]["peak_rss_mb"],
                torch_peak_mb=memory["torch"]["peak_rss_mb"],
                torch_import_mb=memory["torch"]["rss_after_import_mb"])


def show(r):
    print(f"  speed {r['speed_ratio_median']:.2f}x (median of {r['rounds']} paired rounds, "
          f"{r['speed_ratio_min']:.2f} to {r['speed_ratio_max']:.2f}); best step: tally "
          f"{r['tally_tokens_per_s']:.0f}, torch {r['torch_tokens_per_s']:.0f} tokens/s")
    print(f"  peak memory: tally {r['tally_peak_mb']:.0f} MB, torch {r['torch_peak_mb']:.0f} MB "
          f"({r['torch_import_mb']:.0f} MB of it after the import): "
          f"{r['tally_peak_mb'] / r['torch_peak_mb']:.2f}x")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=["tiny-gpt", "tiny-llama"])
    parser.add_argument("--modes", nargs="+", default=["eager", "compile"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=3, help="steps a round and side")
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--program", default=os.path.join(HERE, "../build-bench/train_step"))
    parser.add_argument("--python", default=sys.executable, help="the python that has torch")
    parser.add_argument("--json", help="write the results to this file too")
    options = parser.parse_args()
    print(cpu_name())
    results = []
    for model in options.models:
        for mode in options.modes:
            results.append(compare(model, mode, options))
            show(results[-1])
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
