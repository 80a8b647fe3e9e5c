"""What the training benches share: our side, PyTorch behind a pipe, and what is made of their times.

One clock for both sides: the processor's with one thread, which other processes do not disturb, the wall with more."""

import json
import math
import os
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "models")
TURN_SECONDS = 900


class Broken(Exception):
    """A contestant did not do its work; the message says which and why."""


def environment(threads, core=None):
    """Of a contestant: nothing inherited that chooses kernels or threads."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("OPENBLAS_", "OMP_", "GOMP_", "MKL_", "KMP_", "ATEN_", "DNNL_", "ONEDNN_"))}
    env["OMP_NUM_THREADS"] = str(threads)
    if core:
        env["OPENBLAS_CORETYPE"] = core
    return env


def model_path(name):
    return os.path.join(MODELS, name + ".json")


def read_model(name):
    with open(model_path(name), encoding="utf-8") as f:
        return json.load(f)


class Ours:
    """prereg-train --bench; a new process a turn."""

    def __init__(self, build, path, threads, batch=None, context=None, core=None):
        self.command = [os.path.join(build, "bin", "prereg-train"), "--bench", path, "--threads", str(threads), "--json"]
        self.command += ["--batch", str(batch)] if batch else []
        self.command += ["--context", str(context)] if context else []
        self.env, self.last = environment(threads, core), None

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
        return {"train": seen["tokens_per_second"]["median"], "wall": seen["wall_tokens_per_second"]["median"],
                "forward": seen["forward_tokens_per_second"]["median"],
                "share": seen["share_of_peak"], "ceiling": seen["peak_gflops"], "gflops": seen["gflops"],
                "peak": seen["peak_rss_bytes"]}

    def close(self):
        pass


class Peer:
    """One PyTorch process for the whole contest; it sleeps while others have their turn."""

    def __init__(self, python, path, threads, batch, extra=(), context=None, core=None):
        self.errors = tempfile.TemporaryFile()
        self.scratch = None
        if context:
            with open(path, encoding="utf-8") as f:
                shape = {**json.load(f), "context": context}
            self.scratch = tempfile.NamedTemporaryFile("w", suffix=".json")
            json.dump(shape, self.scratch)
            self.scratch.flush()
            path = self.scratch.name
        command = [python, os.path.join(HERE, "torch_peer.py"), path, "--threads", str(threads), "--batch", str(batch)]
        self.child = subprocess.Popen(command + list(extra), env=environment(threads, core), text=True, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=self.errors)
        with open(path, encoding="utf-8") as f:
            shape = json.load(f)
        self.tokens = batch * shape["context"]
        self.clock = "processor" if threads == 1 else "wall"
        self.about = self.read()
        # A fresh model knows nothing: every token is as likely as any other.
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


def spread(values):
    return {"n": len(values), "median": statistics.median(values), "low": min(values), "high": max(values)}


def ratios(ours, theirs):
    """Round by round: what a drift of the machine does to both is not in it."""
    return spread([a / b for a, b in zip(ours, theirs)])


def text_of(s, digits=0):
    return f"{s['median']:,.{digits}f} ({s['low']:,.{digits}f} to {s['high']:,.{digits}f})"
