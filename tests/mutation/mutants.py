#!/usr/bin/env python3
"""Seeded mutants: edits of one line of an op or a kernel that a test must notice.

    tests/mutation/mutants.py [--build DIR] [--jobs N] [--only WORD] [--sample N] [--proofs]
                             [--tests] [--fresh]
    tests/mutation/mutants.py --check

Each table (*.txt beside this file) lists files and, for each, pairs of lines: `-` what is there,
found exactly once in the file (`-1/2`: the first of exactly two), `+` what stands there instead.
Mutants of a file, and those of all headers of kernels, are compiled together, each behind a number
(batches.py), in a folder of their own that comes first in the include path; the sources are never
touched. A mutant is caught when

  - the proofs of its op fail (op_proofs.cpp compiled with the mutant; for a file of backends/cpu
    its object is linked with kernel_proofs.cpp), or else
  - one of the tests named in the table, or the recorded ops (op_fixture_test), fails.

All mutants go through the proofs first, then the tests get what is left. Results are kept in the
build folder (default build-mutants), so that an interrupted run goes on, and a survivor is tried
again in the next; --fresh forgets them. A mutant that does not compile, or a line that is not
found, is an error of the table. --only runs those whose file or text has WORD, --sample every n-th
so that about N are run, --proofs leaves the tests out and --tests the proofs, --check only looks
for the lines. Exit status 0: at least 95 % are caught and every survivor is explained in
survivors.txt.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import sys
import time

import batches
import runner

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLES = ["elementwise.txt", "rows.txt", "layers.txt", "attention.txt", "kernels.txt"]


class Mutant:
    def __init__(self, table, line, file, options, old, which, new):
        self.table, self.line, self.file, self.options = table, line, file, options
        self.old, self.which, self.new = old, which, new

    def name(self):
        return f"{self.table}:{self.line}"

    def of_kernel(self):
        return self.file.startswith("backends/")

    def unit(self, stage):
        """What is compiled together: the headers of kernels are all parts of one object, the tests of
        ops read most of their headers."""
        if self.of_kernel() and self.file.endswith(".h"):
            return "kernels"
        if stage == "test" and not self.of_kernel():
            return "ops"
        return f"{self.file} {self.options}"

    def key(self):
        number, count = self.which
        place = f" ({number} of {count})" if count > 1 else ""
        return f"{self.file}: {self.old} => {self.new}{place}"

    def place(self, text):
        """Where in the text of the file the old line starts."""
        number, count = self.which
        if text.count(self.old) != count:
            raise SystemExit(f"{self.name()}: `{self.old}` is there {text.count(self.old)} times in "
                             f"{self.file}, not {count}: mend the table")
        at = -1
        for _ in range(number):
            at = text.index(self.old, at + 1)
        return at

    def mutated(self):
        """The text of the file with the mutant in it."""
        text = (ROOT / self.file).read_text()
        at = self.place(text)
        return text[:at] + self.new + text[at + len(self.old):]


def read_table(path):
    mutants, file, options, old, which = [], None, None, None, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("@ "):
            file, *rest = line[2:].split()
            options = {k: v.split(",") for k, v in (word.split("=") for word in rest)}
        elif line.startswith("-"):
            mark, old = line.split(" ", 1)
            which = [int(n) for n in mark[1:].split("/")] if len(mark) > 1 else [1, 1]
        elif line.startswith("+ "):
            mutants.append(Mutant(path.name, number, file, options, old, which, line[2:]))
    return mutants


def explained():
    """Survivors and why, keyed by `file: old => new`."""
    path = HERE / "survivors.txt"
    entries = [e.strip().split("\n", 1) for e in path.read_text().split("\n\n")[1:]]
    return {e[0]: e[1].strip() for e in entries if len(e) == 2}


class Results:
    """Who caught what, in a file of one line a mutant; a changed source is another mutant."""

    def __init__(self, path, fresh):
        self.path, self.caught = path, {}
        if fresh:
            path.unlink(missing_ok=True)
        if path.exists():
            self.caught = dict(json.loads(line) for line in path.read_text().splitlines())

    def id(self, mutant):
        return mutant.key() + " " + hashlib.sha256(mutant.mutated().encode()).hexdigest()[:12]

    def of(self, mutant):
        return self.caught.get(self.id(mutant), "")

    def add(self, mutant, said):
        self.note(self.id(mutant), said)

    def sound(self, file):
        return f"{file} {hashlib.sha256((ROOT / file).read_bytes()).hexdigest()[:12]}"

    def is_sound(self, file):
        """Whether the proofs hold for the file without a mutant."""
        return self.sound(file) in self.caught

    def add_sound(self, file):
        self.note(self.sound(file), "nothing to catch")

    def note(self, key, said):
        self.caught[key] = said
        with self.path.open("a") as file:
            file.write(json.dumps([key, said]) + "\n")


def run_batch(run, stage, batch, note):
    """Whether the batch showed its proofs sound, and what did not build; note(mutant, by whom) for
    each that is caught."""
    try:
        run(batch, stage, note)
        return not batch.alone, []
    except runner.DoesNotBuild as error:
        if batch.alone:
            return False, [f"{batch.mutants[0].name()} {error}"]
        print(f"one by one, since together: {str(error)[:300]}", flush=True)
    return False, [e for part in batch.split() for e in run_batch(run, stage, part, note)[1]]


def run_stage(run, stage, mutants, results, jobs):
    started, broken, done = time.time(), [], 0
    left = batches.batches([m for m in mutants if not results.of(m)], ROOT, stage)
    of = sum(len(b.mutants) for b in left)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(run_batch, run, stage, b, results.add): b for b in left}
        for future in concurrent.futures.as_completed(futures):
            batch, (sound, errors) = futures[future], future.result()
            if sound and stage == "prove":
                for file in batch.sources:
                    results.add_sound(file)
            broken += errors
            done += len(batch.mutants)
            rest = (time.time() - started) / done * (of - done)
            passed = [m.name() for m in batch.mutants if not results.of(m)]
            print(f"{stage} {done}/{of}, {rest / 60:.0f} min left: {batch.files()}: "
                  f"{len(batch.mutants) - len(passed)} of {len(batch.mutants)} caught"
                  f"{', not ' if passed else ''}{', '.join(passed)}", flush=True)
    if broken:
        raise SystemExit("\n".join(["mend the tables:", *broken]))


def check_proofs(without_mutant, mutants, results, jobs):
    """Without a mutant the proofs must hold."""
    left = [m for m in {m.file: m for m in mutants}.values() if not results.is_sound(m.file)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for m, said in zip(left, pool.map(without_mutant, left)):
            if said:
                raise SystemExit(f"{m.file}: fails without a mutant: {said}")
            results.add_sound(m.file)


def summary(mutants, results, seconds):
    reasons = explained()
    survivors = [m for m in mutants if not results.of(m)]
    for m in survivors:
        print(f"SURVIVED {m.name()} {m.key()}\n         {reasons.get(m.key(), 'not explained')}")
    by = collections.Counter(m.table for m in mutants if results.of(m))
    for table, all_of in collections.Counter(m.table for m in mutants).items():
        print(f"{table:16} {by[table]:4} of {all_of:4} caught")
    caught = len(mutants) - len(survivors)
    unexplained = [m for m in survivors if m.key() not in reasons]
    share = 100 * caught / len(mutants)
    print(f"{caught} of {len(mutants)} caught ({share:.1f} %), {len(survivors)} survived, "
          f"{len(unexplained)} of them unexplained; {seconds:.0f} s")
    return 0 if share >= 95 and not unexplained else 1


def check(mutants):
    """Every line is found, once, and every explanation is of a mutant that is there."""
    for m in mutants:
        m.mutated()
    keys = {m.key() for m in mutants}
    lost = [key for key in explained() if key not in keys]
    if lost:
        raise SystemExit(f"survivors.txt explains what is in no table: {lost[0]}")
    print(f"{len(mutants)} mutants of {len({m.file for m in mutants})} files")


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    args.add_argument("--build", type=pathlib.Path, default=ROOT / "build-mutants")
    args.add_argument("--jobs", type=int, default=os.cpu_count())
    args.add_argument("--only", default="")
    args.add_argument("--sample", type=int, default=0)
    args.add_argument("--proofs", action="store_true")
    args.add_argument("--tests", action="store_true")
    args.add_argument("--fresh", action="store_true")
    args.add_argument("--check", action="store_true")
    args = args.parse_args()
    mutants = [m for t in TABLES for m in read_table(HERE / t)]
    check(mutants)
    if args.check:
        return 0
    mutants = [m for m in mutants if args.only in f"{m.file} {m.old} {m.name()}"]
    if args.sample:
        mutants = mutants[:: max(1, len(mutants) // args.sample)][: args.sample]
    if not mutants:
        raise SystemExit("no mutant of that name")
    started = time.time()
    programs = runner.Runner(args.build.resolve())
    results = Results(programs.work / "results.jsonl", args.fresh)
    if not all(results.of(m) and results.is_sound(m.file) for m in mutants):
        programs.prepare(mutants)
        if not args.tests:
            run_stage(programs.run, "prove", mutants, results, args.jobs)
    if any(not results.of(m) for m in mutants) and not args.proofs:
        run_stage(programs.run, "test", mutants, results, args.jobs)
    check_proofs(programs.without_mutant, mutants, results, args.jobs)
    return summary(mutants, results, time.time() - started)


if __name__ == "__main__":
    sys.exit(main())
