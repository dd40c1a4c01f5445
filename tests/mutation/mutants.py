#!/usr/bin/env python3
"""Seeded mutants: edits of one line of an op or a kernel that a test must notice.

    tests/mutation/mutants.py [--build DIR] [--only WORD] [--sample N] [--check]

Each table (*.txt beside this file) lists files and, for each, pairs of lines: `-` what is there,
found exactly once in the file (`-1/2`: the first of exactly two), `+` what stands there instead. A
mutant lives in a folder of its own that comes first in the include path; the sources are never
touched. It is caught when

  - the proofs of its op fail (op_proofs.cpp compiled with the mutant; for a file of backends/cpu
    its object is linked with kernel_proofs.cpp), or else
  - one of the tests named in the table, or the recorded ops (op_fixture_test), fails.

A mutant that does not compile, or a line that is not found, is an error of the table. --only runs
those whose file or text has WORD, --sample every n-th so that about N are run, --check only
looks for the lines. The build folder (default build-mutants) is made without unity builds.
Exit status 0: at least 95 % are caught and every survivor is explained in survivors.txt.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLES = ["elementwise.txt", "rows.txt", "layers.txt", "attention.txt", "kernels.txt"]
TARGETS = ["op_backend_test", "op_fixture_test", "gemm_test", "simd_test", "op_proof_test"]
KERNEL_TESTS = ["op_fixture_test", "gemm_test", "simd_test", "op_backend_test"]
FLAGS = ["-std=c++20", "-O0", "-ffp-contract=off", "-w"]


class Mutant:
    def __init__(self, table, line, file, options, old, which, new):
        self.table, self.line, self.file, self.options = table, line, file, options
        self.old, self.which, self.new = old, which, new

    def name(self):
        return f"{self.table}:{self.line}"

    def mutated(self):
        """The text of the file with the mutant in it."""
        text = (ROOT / self.file).read_text()
        number, count = self.which
        if text.count(self.old) != count:
            raise SystemExit(f"{self.name()}: `{self.old}` is there {text.count(self.old)} times in "
                             f"{self.file}, not {count}: mend the table")
        at = -1
        for _ in range(number):
            at = text.index(self.old, at + 1)
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
    entries = [e.split("\n", 1) for e in path.read_text().split("\n\n") if " => " in e]
    return {e[0].strip(): e[1].strip() for e in entries if len(e) == 2}


def command(args, seconds=300, **more):
    try:
        return subprocess.run([str(a) for a in args], capture_output=True, text=True,
                              timeout=seconds, **more)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(args, 124, "", "took too long")


class Runner:
    def __init__(self, build):
        self.build = build
        self.work = build / "mutants"
        self.work.mkdir(parents=True, exist_ok=True)
        self.calls = re.findall(r"ops::(\w+)::(\w+)", (ROOT / "core/ops/all.h").read_text())
        self.isa = "avx512" if "avx512dq" in pathlib.Path("/proc/cpuinfo").read_text() else "avx2"
        self.baselines = {}
        self.dependents = {}

    def compiler(self):
        return (["ccache"] if shutil.which("ccache") else []) + ["g++"]

    def compile(self, source, out, shadow, flags=()):
        done = command([*self.compiler(), *FLAGS, *flags, "-I", shadow, "-I", ROOT, "-I", ROOT / "tests",
                        f'-DTALLY_TEST_DATA="{ROOT}/tests/data"', "-c", source, "-o", out])
        if done.returncode:
            raise SystemExit(f"does not compile: {source}\n{done.stderr[:2000]}")
        return out

    def libraries(self):
        """Archives, those that use others first."""
        names = ["cli/libtally_cli.a", "models/libtally_models.a", "optim/libtally_optim.a",
                 "nn/libtally_nn_samples.a", "nn/libtally_nn.a", "data/libtally_data.a",
                 "autograd/libtally_proof.a", "autograd/libtally_autograd.a",
                 "backends/libtally_backends.a", "backends/libtally_reference.a",
                 "backends/libtally_meta.a", "backends/cpu/libtally_cpu.a", "core/libtally_core.a"]
        blas = re.search(r"OPENBLAS_LIBRARY:FILEPATH=(.*)", (self.build / "CMakeCache.txt").read_text())
        return [*(self.build / n for n in names), blas.group(1), "-lfmt", "-lpcre2-8", "-lpthread"]

    def link(self, objects, out):
        done = command(["g++", *objects, "-Wl,--start-group", *self.libraries(), "-Wl,--end-group",
                        "-o", out])
        if done.returncode:
            raise SystemExit(f"does not link: {out}\n{done.stderr[:2000]}")
        return out

    def test_object(self, test):
        return self.build / f"tests/CMakeFiles/{test}.dir/{test}.cpp.o"

    def test_main(self):
        return self.build / "tests/CMakeFiles/tally_test_main.dir/main.cpp.o"

    def op_header(self, options, file):
        """What op_proofs.cpp is told: the calls and samples of the ops."""
        groups = options["samples"]
        headers = [f"autograd/samples/{g}.h" for g in groups]
        functions, files, ops = [], {file}, set()
        for header in headers:
            text = (ROOT / header).read_text()
            functions += re.findall(r"inline std::vector<Sample> (\w+)\(\) \{", text)
            files |= set(re.findall(r'#include "(core/ops/[\w/]+\.h)"', text))
        for header in files:
            ops |= set(re.findall(r"(?:struct|using) (\w+)", (ROOT / header).read_text()))
        calls = [f"ops::{op}::{call}" for op, call in self.calls if op in ops]
        lines = [f'#include "{h}"' for h in [*headers, file]]
        lines += ["namespace tally {", f"using MutantCalls = TypeList<{', '.join(calls)}>;",
                  "inline std::vector<Sample> mutant_samples() {", "std::vector<Sample> all;"]
        lines += [f"for (const Sample& s : samples::{f}()) all.push_back(s);" for f in functions]
        return "\n".join([*lines, "return all;", "}", "}"])

    def op_program(self, shadow, options, file):
        (shadow / "mutant_op.h").write_text(self.op_header(options, file))
        found = self.compile(HERE / "op_proofs.cpp", shadow / "op_proofs.o", shadow)
        return self.link([found], shadow / "op_proofs")

    def kernel_object(self, mutant, shadow):
        if mutant.file.endswith(".cpp"):
            blas = re.search(r"OPENBLAS_INCLUDE_DIR:PATH=(.*)", (self.build / "CMakeCache.txt").read_text())
            return self.compile(shadow / mutant.file, shadow / "kernel.o", shadow, ["-I", blas.group(1)])
        machine = (["-mavx2", "-mfma", "-mf16c"] if self.isa == "avx2" else
                   ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma", "-mf16c",
                    "-mprefer-vector-width=512"])
        return self.compile(ROOT / f"backends/cpu/isa_{self.isa}.cpp", shadow / "kernel.o", shadow,
                            ["-O1", *machine])

    def fails(self, program, *args):
        done = command([program, *args])
        if done.returncode == 0:
            return ""
        first = (done.stdout + done.stderr).strip().splitlines()
        return (first[0] if first else f"exit status {done.returncode}")[:160]

    def catch_op(self, mutant, shadow):
        said = self.fails(self.op_program(shadow, mutant.options, mutant.file))
        if said:
            return said
        sources = sorted((ROOT / "autograd").glob("*.cpp")) + sorted((ROOT / "cli").glob("verify_ops*.cpp"))
        objects = [shadow / "op_proofs_calls.o"]
        self.compile(HERE / "op_proofs.cpp", objects[0], shadow, ["-Dmain=unused_main"])
        for source in sources:
            if self.reads(source, mutant.file):
                objects.append(self.compile(source, shadow / f"{source.stem}.o", shadow))
        for test in ["op_fixture_test", *mutant.options.get("tests", [])]:
            found = self.compile(ROOT / f"tests/{test}.cpp", shadow / f"{test}.o", shadow)
            program = self.link([*objects, found, self.test_main()], shadow / test)
            if self.fails(program):
                return test
        return ""

    def reads(self, source, file):
        """Whether a source includes a file, directly or not."""
        if source not in self.dependents:
            self.dependents[source] = command(["g++", "-std=c++20", "-MM", "-I", ROOT, source]).stdout
        return f"/{file}" in self.dependents[source]

    def catch_kernel(self, mutant, shadow):
        found = self.kernel_object(mutant, shadow)
        said = self.fails(self.link([self.kernel_proofs, found], shadow / "proofs"), *mutant.options["ops"])
        if said:
            return said
        for test in KERNEL_TESTS + mutant.options.get("tests", []):
            program = self.link([self.test_object(test), self.test_main(), found], shadow / test)
            if self.fails(program):
                return test
        return ""

    def run(self, mutant):
        shadow = self.work / mutant.name().replace(":", "-").replace(".txt", "")
        shutil.rmtree(shadow, ignore_errors=True)
        (shadow / mutant.file).parent.mkdir(parents=True)
        (shadow / mutant.file).write_text(mutant.mutated())
        try:
            kernel = mutant.file.startswith("backends/")
            return (self.catch_kernel if kernel else self.catch_op)(mutant, shadow)
        finally:
            shutil.rmtree(shadow, ignore_errors=True)

    def prepare(self, mutants):
        """Builds what is linked, and sees that without a mutant everything passes."""
        if not (self.build / "CMakeCache.txt").exists():
            subprocess.run(["cmake", "-S", ROOT, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                            "-DTALLY_TESTS=ON"], check=True, stdout=subprocess.DEVNULL)
        tests = {t for m in mutants if "ops" in m.options for t in m.options.get("tests", [])}
        subprocess.run(["cmake", "--build", self.build, "--target", *TARGETS, *tests], check=True,
                       stdout=subprocess.DEVNULL)
        plain = self.work / "plain"
        plain.mkdir(exist_ok=True)
        self.kernel_proofs = self.compile(HERE / "kernel_proofs.cpp", self.work / "kernel_proofs.o", plain)
        whole = self.link([self.kernel_proofs], plain / "proofs")

        def whole_passes(mutant):
            folder = self.work / f"plain-{mutant.name()}"
            folder.mkdir(exist_ok=True)
            o = mutant.options
            said = self.fails(*([whole, *o["ops"]] if "ops" in o else
                                [self.op_program(folder, o, mutant.file)]))
            if said:
                raise SystemExit(f"{mutant.file}: fails without a mutant: {said}")

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(whole_passes, {m.file: m for m in mutants}.values()))


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    args.add_argument("--build", type=pathlib.Path, default=ROOT / "build-mutants")
    args.add_argument("--only", default="")
    args.add_argument("--sample", type=int, default=0)
    args.add_argument("--check", action="store_true")
    args = args.parse_args()
    mutants = [m for t in TABLES for m in read_table(HERE / t)]
    mutants = [m for m in mutants if args.only in f"{m.file} {m.old} {m.name()}"]
    if args.sample:
        mutants = mutants[:: max(1, len(mutants) // args.sample)][: args.sample]
    for m in mutants:
        m.mutated()
    print(f"{len(mutants)} mutants of {len({m.file for m in mutants})} files")
    if args.check:
        return 0
    if not mutants:
        raise SystemExit("no mutant of that name")
    started = time.time()
    runner = Runner(args.build.resolve())
    runner.prepare(mutants)
    reasons, survivors, caught = explained(), [], 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for m, said in zip(mutants, pool.map(runner.run, mutants)):
            key = f"{m.file}: {m.old} => {m.new}"
            print(f"{'caught  ' if said else 'SURVIVED'}  {m.name():18} {key}\n"
                  f"          {'by ' + said if said else reasons.get(key, 'not explained')}", flush=True)
            caught += bool(said)
            survivors += [] if said else [key]
    share = 100 * caught / len(mutants)
    unexplained = [s for s in survivors if s not in reasons]
    print(f"\n{caught} of {len(mutants)} caught ({share:.1f} %), {len(survivors)} survived, "
          f"{len(unexplained)} of them unexplained; {time.time() - started:.0f} s")
    return 0 if share >= 95 and not unexplained else 1


if __name__ == "__main__":
    sys.exit(main())
