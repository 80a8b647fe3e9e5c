"""What the training benches share: our side, PyTorch behind a pipe, and what is made of their times.

One clock for both sides: the processor's with one thread, which other processes do not disturb, the wall with more.
Each contestant keeps to as many processors as it has threads."""

import contextlib
import fcntl
import json
import math
import os
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "models")
TURN_SECONDS = 900
# What chooses kernels or threads, of every library that takes part.
CHOICES = ("OPENBLAS_", "OMP_", "GOMP_", "MKL_", "KMP_", "ATEN_", "DNNL_", "ONEDNN_", "PREREG_CPU", "PREREG_BFLOAT16")
# Each side on AVX2, whatever the processor has.
AVX2 = {"PREREG_CPU": "avx2", "OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2"}


class Broken(Exception):
    """A contestant did not do its work; the message says which and why."""


def require_finite(who, what, values):
    """What computes nonsense is broken, however fast it is."""
    for value in values:
        if not math.isfinite(value):
            raise Broken(f"{who}: {what} is {value}")


def environment(threads, choices=None):
    """Of a contestant: nothing inherited that chooses kernels or threads, only `choices`."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(CHOICES)}
    return {**env, "OMP_NUM_THREADS": str(threads), **(choices or {})}


def named(build):
    """The choice of a CPUID that names avx512_bf16 (cpuid_bfloat16.c)."""
    library = os.path.join(build, "bench", "cpuid_bfloat16.so")
    if not os.path.exists(library):
        raise Broken(f"no {library}: build the target cpuid_bfloat16")
    return {"LD_PRELOAD": library}


def pinned(threads):
    """The beginning of a command that keeps to the last processors that we may use, one a thread."""
    cores = sorted(os.sched_getaffinity(0))[-threads:]
    return ["taskset", "-c", ",".join(map(str, cores))]


@contextlib.contextmanager
def lock(path):
    """Holds the file during a round, so that measurements on one machine do not overlap; without a path, nothing."""
    if path is None:
        yield
        return
    with open(path, "a", encoding="utf-8") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def model_path(name):
    return os.path.join(MODELS, name + ".json")


def read_model(name):
    with open(model_path(name), encoding="utf-8") as f:
        return json.load(f)


class Ours:
    """prereg-train --bench; a new process a turn."""

    def __init__(self, build, path, threads, batch=None, context=None, extra=(), choices=None):
        self.command = pinned(threads) + [os.path.join(build, "bin", "prereg-train"), "--bench", path]
        self.command += ["--threads", str(threads), "--json", *extra]
        self.command += ["--batch", str(batch)] if batch else []
        self.command += ["--context", str(context)] if context else []
        self.env, self.last = environment(threads, choices), None

    def start(self, steps):
        return subprocess.Popen(self.command + ["--steps", str(steps)], env=self.env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self, child):
        try:
            out, said = child.communicate(timeout=TURN_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            raise Broken("prereg-train --bench took too long") from None
        if child.returncode != 0:
            raise Broken(f"prereg-train --bench ended with {child.returncode}: {said.strip()}")
        self.last = json.loads(out)
        return self.last

    def turn(self, steps):
        seen = self.finish(self.start(steps))
        turn = {"train": seen["tokens_per_second"]["median"], "wall": seen["wall_tokens_per_second"]["median"],
                "forward": seen["forward_tokens_per_second"]["median"],
                "peak": seen["peak_rss_bytes"],
                **{k: seen[k] for k in ("share_of_peak", "products_share_of_peak", "peak_gflops", "gflops") if k in seen}}
        for key, value in turn.items():
            require_finite("prereg-train --bench", key, [value])
        return turn

    def close(self):
        pass


class Peer:
    """One PyTorch process for the whole contest; it sleeps while others have their turn."""

    def __init__(self, python, path, threads, batch, context=None, extra=(), choices=None):
        self.errors = tempfile.TemporaryFile()
        self.scratch = None
        if context:
            with open(path, encoding="utf-8") as f:
                shape = {**json.load(f), "context": context}
            self.scratch = tempfile.NamedTemporaryFile("w", suffix=".json")
            json.dump(shape, self.scratch)
            self.scratch.flush()
            path = self.scratch.name
        command = pinned(threads) + [python, os.path.join(HERE, "torch_peer.py"), path]
        command += ["--threads", str(threads), "--batch", str(batch), *extra]
        self.child = subprocess.Popen(command, env=environment(threads, choices), text=True, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=self.errors)
        with open(path, encoding="utf-8") as f:
            shape = json.load(f)
        self.tokens = batch * shape["context"]
        self.clock = "processor" if threads == 1 else "wall"
        self.about = self.read()
        # A fresh model knows nothing: every token is as likely as any other.
        require_finite("PyTorch", "the first loss", [self.about["first_loss"]])
        if abs(self.about["first_loss"] - math.log(shape["vocab"])) > 0.3:
            raise Broken(f"PyTorch's first loss is {self.about['first_loss']}, not ln {shape['vocab']}")

    def read(self):
        line = self.child.stdout.readline()
        if not line:
            self.child.wait()
            self.errors.seek(0)
            last = self.errors.read().decode(errors="replace").strip().splitlines()[-1:] or ["no word"]
            raise Broken(f"PyTorch ended with {self.child.returncode}: {last[0]}")
        return json.loads(line)

    def ask(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        return self.read()

    def turn(self, steps):
        # After a pause the first pass is slow: memory that was given back comes anew. Ours warms up as well.
        self.ask("train 1")
        train = self.ask(f"train {steps}")
        memory = self.ask("memory")
        self.ask("forward 1")
        forward = self.ask(f"forward {steps}")
        require_finite("PyTorch", "a loss", train["losses"] + forward["losses"])
        return {"train": self.tokens / statistics.median(train[self.clock]),
                "wall": self.tokens / statistics.median(train["wall"]),
                "forward": self.tokens / statistics.median(forward[self.clock]),
                "peak": memory["peak"], "imported": memory["imported"]}

    def close(self):
        try:
            self.child.stdin.write("quit\n")
            self.child.stdin.close()
            self.child.wait(30)
        except (OSError, subprocess.TimeoutExpired):
            self.child.kill()
            self.child.wait()


def bfloat16_kernels(python, choices=None):
    """What a PyTorch says about bfloat16 on this processor: its capabilities, and oneDNN's kernel for a product."""
    command = pinned(1) + [python, os.path.join(HERE, "torch_peer.py"), "--kernels"]
    env = {**environment(1, choices), "ONEDNN_VERBOSE": "1", "DNNL_VERBOSE": "1"}
    done = subprocess.run(command, env=env, text=True, capture_output=True, timeout=TURN_SECONDS, check=False)
    lines = done.stdout.splitlines()
    about = [line.removeprefix("about: ") for line in lines if line.startswith("about: ")]
    isa = [line.split("isa:")[1].strip() for line in lines if "verbose" in line and "isa:" in line]
    chosen = [",".join(line.split("exec,")[1].split(",")[1:3]) for line in lines if "verbose" in line and "exec," in line]
    products = sorted({k for k in chosen if k.startswith(("matmul", "inner_product"))})
    return about + [f"oneDNN: {i}" for i in isa[:1]] + [f"oneDNN, product in bfloat16: {' '.join(products) or 'not used'}"]


def spread(values):
    return {"n": len(values), "median": statistics.median(values), "low": min(values), "high": max(values)}


def ratios(ours, theirs):
    """Round by round: what a drift of the machine does to both is not in it."""
    return spread([a / b for a, b in zip(ours, theirs)])


def text_of(s, digits=0):
    return f"{s['median']:,.{digits}f} ({s['low']:,.{digits}f} to {s['high']:,.{digits}f})"
