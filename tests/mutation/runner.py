"""Compiles one mutant with what proves it, and says who caught it. Used by mutants.py."""
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIBRARIES = ["tally_proof", "tally_backends"]
OP_TESTS = ["op_fixture_test"]
KERNEL_TESTS = ["simd_test", "gemm_test", "op_backend_test", "op_fixture_test"]
FLAGS = ["-std=c++20", "-O0", "-ffp-contract=off", "-w"]
MACHINE = {"avx2": ["-mavx2", "-mfma", "-mf16c"],
           "avx512": ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma", "-mf16c",
                      "-mprefer-vector-width=512"]}


def command(args, seconds=1800, **more):
    try:
        return subprocess.run([str(a) for a in args], capture_output=True, text=True,
                              timeout=seconds, **more)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(args, 124, "", "took too long")


def nothing(_mutant):
    """The arguments of a program that takes none."""
    return []


def tests_of(left, more):
    """The tests that the mutants name, then those that take all, each while one of its mutants is
    left; and its arguments for a mutant: the first check that fails is enough. None for others."""
    named = [t for m in left.values() for t in m.options.get("tests", [])]
    for test in dict.fromkeys([*named, *more]):
        def args(m, test=test):
            return ["--abort"] if test in [*m.options.get("tests", []), *more] else None
        if any(args(m) for m in left.values()):
            yield test, args


def fails(program, args, number=0, seconds=1800):
    """Empty where the program passes with the mutant of that number, else its first line."""
    done = command([program, *args], seconds, env={**os.environ, "TALLY_MUTANT": str(number)})
    if done.returncode == 0:
        return ""
    first = (done.stdout + done.stderr).strip().splitlines()
    return (first[0] if first else f"exit status {done.returncode}")[:160]


def one_of(left):
    return next(iter(left.values()))


class DoesNotBuild(Exception):
    """A mutant that is no program, or several that fail together when none of them acts."""


class Runner:
    def __init__(self, build):
        self.build = build
        self.work = build / "mutants"
        self.work.mkdir(parents=True, exist_ok=True)
        self.calls = re.findall(r"ops::(\w+)::(\w+)", (ROOT / "core/ops/all.h").read_text())
        self.isa = "avx512" if "avx512dq" in pathlib.Path("/proc/cpuinfo").read_text() else "avx2"
        self.dependents = {}
        self.one_build = threading.Lock()

    # --- compiling and linking ---------------------------------------------------------------

    def cached(self, name):
        return re.search(rf"{name}:\w+=(.*)", (self.build / "CMakeCache.txt").read_text()).group(1)

    def compile(self, source, out, shadow, flags=()):
        done = command(["g++", *FLAGS, *flags, "-I", shadow, "-I", ROOT, "-I", ROOT / "tests",
                        f'-DTALLY_TEST_DATA="{ROOT}/tests/data"', "-c", source, "-o", out])
        if done.returncode:
            raise DoesNotBuild(f"does not compile: {source}\n{done.stderr[:2000]}")
        return out

    def libraries(self):
        """Archives, those that use others first; what was not built is not needed."""
        names = ["cli/libtally_cli.a", "models/libtally_models.a", "optim/libtally_optim.a",
                 "nn/libtally_nn_samples.a", "nn/libtally_nn.a", "data/libtally_data.a",
                 "autograd/libtally_proof.a", "autograd/libtally_autograd.a",
                 "backends/libtally_backends.a", "backends/libtally_reference.a",
                 "backends/libtally_meta.a", "backends/cpu/libtally_cpu.a", "core/libtally_core.a"]
        there = [self.build / n for n in names if (self.build / n).exists()]
        return [*there, self.cached("OPENBLAS_LIBRARY"), "-lfmt", "-lpcre2-8", "-lpthread"]

    def link(self, objects, out):
        # The mutant's definitions come first, and so are those that count.
        linker = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []
        done = command(["g++", *linker, *objects, "-Wl,-z,muldefs", "-Wl,--start-group",
                        *self.libraries(), "-Wl,--end-group", "-o", out])
        if done.returncode:
            raise DoesNotBuild(f"does not link: {out}\n{done.stderr[:2000]}")
        return out

    def reads(self, source, file):
        """Whether a source includes a file, directly or not."""
        if source not in self.dependents:
            done = command(["g++", "-std=c++20", "-MM", "-I", ROOT, "-I", ROOT / "tests", source])
            self.dependents[source] = done.stdout
        return f"/{file}" in self.dependents[source]

    # --- ops ---------------------------------------------------------------------------------

    def op_header(self, mutants):
        """What op_proofs.cpp is told: the calls and samples of the ops."""
        groups = dict.fromkeys(g for m in mutants for g in m.options["samples"])
        headers, mutated = [f"autograd/samples/{g}.h" for g in groups], sorted({m.file for m in mutants})
        functions, files, ops = [], set(mutated), set()
        for header in headers:
            text = (ROOT / header).read_text()
            functions += re.findall(r"inline std::vector<Sample> (\w+)\(\) \{", text)
            files |= set(re.findall(r'#include "(core/ops/[\w/]+\.h)"', text))
        for header in files:
            ops |= set(re.findall(r"(?:struct|using) (\w+)", (ROOT / header).read_text()))
        calls = [f"ops::{op}::{call}" for op, call in self.calls if op in ops]
        lines = [f'#include "{h}"' for h in [*headers, *mutated]]
        lines += ["namespace tally {", f"using MutantCalls = TypeList<{', '.join(calls)}>;",
                  "inline std::vector<Sample> mutant_samples() {", "std::vector<Sample> all;"]
        lines += [f"for (const Sample& s : samples::{f}()) all.push_back(s);" for f in functions]
        return "\n".join([*lines, "return all;", "}", "}"])

    def common(self, mutants):
        """The precompiled header, unless it has a mutant in it; and the switch between mutants."""
        mutated = any(self.reads(HERE / "common.h", m.file) for m in mutants)
        return [*([] if mutated else ["-include", self.work / "common.h"]),
                "-include", HERE / "switch.h"]

    def op_object(self, shadow, mutants, *flags):
        (shadow / "mutant_op.h").write_text(self.op_header(mutants))
        return self.compile(HERE / "op_proofs.cpp", shadow / "op_proofs.o", shadow,
                            [*self.common(mutants), *flags])

    def prove_op(self, left, shadow):
        op = self.op_object(shadow, list(left.values()))
        yield "", self.link([op], shadow / "op_proofs"), nothing

    def test_op(self, left, shadow):
        mutants = list(left.values())
        switch = ["-include", HERE / "switch.h"]
        objects = [self.op_object(shadow, mutants, "-Dmain=unused_main")]
        for source in sorted((ROOT / "autograd").glob("*.cpp")):
            if any(self.reads(source, m.file) for m in mutants):
                objects.append(self.compile(source, shadow / f"{source.stem}.o", shadow, switch))
        for test, args in tests_of(left, OP_TESTS):
            more = sorted((ROOT / "cli").glob("verify_ops*.cpp")) if test == "op_fixture_test" else []
            self.make(self.linked_by(test))
            own = [self.compile(source, shadow / f"{source.stem}.o", shadow, switch)
                   for source in [*more, ROOT / f"tests/{test}.cpp"]]
            program = self.link([*objects, *own, self.test_main()], shadow / test)
            yield test, program, args

    # --- kernels -----------------------------------------------------------------------------

    def test_object(self, test):
        return next((self.build / f"tests/CMakeFiles/{test}.dir").glob("**/*.o"))

    def test_main(self):
        return next((self.build / "tests/CMakeFiles/tally_test_main.dir").glob("**/*.o"))

    def kernel_object(self, mutant, shadow):
        switch = ["-O1", "-include", HERE / "switch.h"]
        if mutant.file.endswith(".cpp"):
            source = shadow / mutant.file
            # In a unity build, the source that was joined to others is replaced there.
            for unity in (self.build / "backends/cpu/CMakeFiles/tally_cpu.dir").glob("Unity/*.cxx"):
                text = unity.read_text()
                if f'"{ROOT}/{mutant.file}"' in text:
                    source = shadow / unity.name
                    source.write_text(text.replace(f"{ROOT}/{mutant.file}", f"{shadow}/{mutant.file}"))
            return self.compile(source, shadow / "kernel.o", shadow,
                                [*switch, "-I", self.cached("OPENBLAS_INCLUDE_DIR")])
        return self.compile(ROOT / f"backends/cpu/isa_{self.isa}.cpp", shadow / "kernel.o", shadow,
                            [*switch, *MACHINE[self.isa]])

    def prove_kernel(self, left, shadow):
        found = self.kernel_object(one_of(left), shadow)
        yield "", self.link([self.kernel_proofs, found], shadow / "proofs"), lambda m: m.options["ops"]

    def test_kernel(self, left, shadow):
        found = self.kernel_object(one_of(left), shadow)
        for test, args in tests_of(left, KERNEL_TESTS):
            self.make([test])
            objects = [self.test_object(test), self.test_main(), found]
            yield test, self.link(objects, shadow / test), args

    # --- both --------------------------------------------------------------------------------

    def programs(self, left, stage, shadow):
        """Name, program and arguments (of a mutant) of what may catch those left; stage: prove or
        test."""
        kind = "kernel" if one_of(left).of_kernel() else "op"
        return getattr(self, f"{stage}_{kind}")(left, shadow)

    def shadow(self, name, texts):
        """A folder of its own with these files."""
        shadow = self.work / name
        shutil.rmtree(shadow, ignore_errors=True)
        for file, text in texts.items():
            (shadow / file).parent.mkdir(parents=True, exist_ok=True)
            (shadow / file).write_text(text)
        return shadow

    def run(self, batch, stage, note):
        """note(mutant, by whom) for each that is caught."""
        shadow, left = self.shadow(batch.name(), batch.texts()), dict(enumerate(batch.mutants, 1))
        try:
            for name, program, args in self.programs(left, stage, shadow):
                calls = {n: tuple(args(m)) for n, m in left.items() if args(m) is not None}
                seconds = {} if batch.alone else self.seconds(name, program, set(calls.values()))
                for number, call in calls.items():
                    said = fails(program, call, number, seconds.get(call, 600))
                    if said:
                        note(left.pop(number), name or said)
                if not left:
                    break
        finally:
            shutil.rmtree(shadow, ignore_errors=True)

    def seconds(self, name, program, calls):
        """How long each call may take: a mutant that never ends is caught by that. Without a mutant
        each must pass."""
        limits = {}
        for call in calls:
            started = time.time()
            said = fails(program, call)
            if said:
                raise DoesNotBuild(f"{name} fails without a mutant: {said}")
            limits[call] = 60 + 5 * (time.time() - started)
        return limits

    def without_mutant(self, mutant):
        """What the proofs of a mutant's file say of the file as it is: nothing, or they are wrong."""
        shadow = self.shadow(f"plain-{mutant.name()}", {mutant.file: (ROOT / mutant.file).read_text()})
        try:
            return "".join(fails(program, args(mutant)) for _, program, args in
                           self.programs({0: mutant}, "prove", shadow))
        finally:
            shutil.rmtree(shadow, ignore_errors=True)

    def linked_by(self, test):
        """The targets that a test links."""
        line = re.search(rf"tally_test\({test} .*", (ROOT / "tests/CMakeLists.txt").read_text()).group(0)
        libs = re.search(r"LIBS ([^)]*)", line).group(1).split()
        return ["tally_test_main", *(lib.replace("::", "_") for lib in libs)]

    def make(self, targets):
        with self.one_build:
            if not (self.build / "CMakeCache.txt").exists():
                subprocess.run(["cmake", "-S", ROOT, "-B", self.build, "-G", "Ninja", "-DTALLY_TESTS=ON",
                                "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_UNITY_BUILD=ON"], check=True,
                               stdout=subprocess.DEVNULL)
            jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count()))
            subprocess.run(["cmake", "--build", self.build, "--parallel", jobs, "--target", *targets],
                           check=True, stdout=subprocess.DEVNULL)

    def prepare(self, mutants):
        """Builds what mutants are compiled and linked with."""
        self.make(LIBRARIES)
        if not all(m.of_kernel() for m in mutants):
            shutil.copy(HERE / "common.h", self.work)
            self.compile(HERE / "common.h", self.work / "common.h.gch", self.work,
                         ["-x", "c++-header"])
        if any(m.of_kernel() for m in mutants):
            self.kernel_proofs = self.compile(HERE / "kernel_proofs.cpp", self.work / "kernel.o", self.work)
