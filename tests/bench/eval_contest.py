"""What the evaluation bench sets against each other: the model, the cut files, and one turn of either side.

A turn is a fresh process of one thread. Of the harness only simple_evaluate is counted (tasks, prompts, model), not what
importing PyTorch and opening the model take; of prereg-eval the whole process is."""

import json
import os
import shutil
import subprocess
import sys

import contest

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.environ.get("PREREGD_SHARED") or os.path.join(HERE, "../../../shared")
SUBJECTS = ("anatomy", "high_school_physics", "philosophy", "virology")
# case: (task, items of the file or of each subject, shots, aim)
CASES = {
    "mmlu": ("mmlu", 40, 5, 10.0),
    "hellaswag": ("hellaswag", 200, 0, 4.0),
    "winogrande": ("winogrande", 600, 0, 3.0),
    "gsm8k": ("gsm8k", 16, 5, 3.0),
}
FILES = {"hellaswag": "hellaswag/hellaswag_val.jsonl", "winogrande": "winogrande/dev.jsonl", "gsm8k": "gsm8k/test.jsonl"}
TRAIN = {"gsm8k": "gsm8k/train.jsonl"}
MAX_TOKENS = 256
# glibc gives large blocks back at once, and fresh memory is dear: what helps a harness that allocates its logits anew for every batch
KEEPS_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 34), "MALLOC_TOP_PAD_": str(64 << 20)}


def shared(*parts):
    path = os.path.abspath(os.path.join(SHARED, "data", *parts))
    if not os.path.exists(path):
        raise contest.Broken(f"no {path}")
    return path


def cut(source, target, lines):
    with open(source, encoding="utf-8") as f, open(target, "w", encoding="utf-8") as out:
        for _, line in zip(range(lines), f):
            out.write(line)
    return target


def cut_csv(source, target, rows):
    """The first so many records; a quoted field may hold line feeds."""
    import csv
    with open(source, newline="", encoding="utf-8") as f, open(target, "w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows(row for _, row in zip(range(rows), csv.reader(f)))


def make_files(folder, scale, least):
    """What both sides read, by case; a generation is as dear as many of the other items, so that 8 are a part of theirs."""
    os.makedirs(folder)
    out = {}
    for name, (task, items, _, _) in CASES.items():
        items = max(least if task == "gsm8k" else 2, round(items * scale))
        if task != "mmlu":
            out[name] = cut(shared(FILES[task]), os.path.join(folder, f"{name}.jsonl"), items)
            continue
        out[name] = os.path.join(folder, "mmlu")
        for split, rows in (("dev", 100), ("test", items)):
            os.makedirs(os.path.join(out[name], split), exist_ok=True)
            for subject in SUBJECTS:
                file = f"{split}/{subject}_{split}.csv"
                cut_csv(shared("mmlu", file), os.path.join(out[name], file), rows)
    return out


def make_model(build, folder):
    """34.6 million parameters after one small step, with a vocabulary of OpenWebText; and the same for transformers."""
    task, out = os.path.join(folder, "train"), os.path.join(folder, "hf")
    with open(contest.model_path("dense34m"), encoding="utf-8") as f:
        shape = json.load(f)
    os.makedirs(task, exist_ok=True)
    text = cut(shared("tinystories", "train.jsonl"), os.path.join(folder, "text.jsonl"), 200)
    params = {**shape, "context": 1024, "tokenizer": "vocabulary", "data": "text", "batch_tokens": 1024, "lr": 0.001, "seed": 1,
              "horizon": {"contract": "fixed", "tokens": 1024}}
    data = {"text": {"path": text}, "vocabulary": {"path": shared("tokenizers", "bpe32000_owt")}}
    write_task(task, params, data)
    run([os.path.join(build, "bin", "prereg-train")], task, contest.environment(1))
    run([os.path.join(build, "bin", "prereg-train"), "export", "--hf", out, task], task, contest.environment(1))
    return out


def write_task(folder, params, data):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "task.json"), "w", encoding="utf-8") as f:
        json.dump({"protocol": 1, "attempt": "bench", "attempt_no": 1, "threads": 1, "params": params, "data": data, "resume": []}, f)


def run(command, folder, env):
    """Runs a program to its end: (what it printed, processor seconds, peak of the resident set)."""
    env = {**env, "PREREG_TASK": "task.json", "PREREG_EVENTS": "events.jsonl"}
    with open(os.path.join(folder, "stderr"), "w+b") as errors:
        child = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=errors)
        out = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip().splitlines()[-1:] or ["no word"]
            raise contest.Broken(f"{os.path.basename(command[0])} ended with {child.returncode}: {said[0]}")
    return out.decode(), used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


class Ours:
    def __init__(self, build, folder, model, files, choices=None):
        self.build, self.folder, self.model, self.files = build, folder, model, files
        self.env = contest.environment(1, choices)

    def turn(self, case):
        task, _, shots, _ = CASES[case]
        work = os.path.join(self.folder, "turn")
        shutil.rmtree(work, ignore_errors=True)
        params = {"task": task, "data": "items", "model": "model", "shots": shots}
        data = {"items": {"path": self.files[case]}, "model": {"path": self.model}}
        if task == "mmlu":
            params["groups"] = list(SUBJECTS)
        if task in TRAIN:
            params.update(fewshot_data="pool", max_tokens=MAX_TOKENS, viability={"items": 0})
            data["pool"] = {"path": shared(TRAIN[task])}
        write_task(work, params, data)
        _, seconds, peak = run(contest.pinned(1) + [os.path.join(self.build, "bin", "prereg-eval")], work, self.env)
        with open(os.path.join(work, "result.json"), encoding="utf-8") as f:
            result = json.load(f)
        return {"seconds": seconds, "peak": peak, "facts": result["facts"],
                "metrics": {k: v["value"] for k, v in result["metrics"].items()}}


class Theirs:
    """lm-evaluation-harness under a Python that has it."""

    def __init__(self, python, folder, model, files, setting, choices=None):
        """setting: batch size, and whether malloc keeps its memory."""
        self.python, self.folder, self.model, self.files = python, folder, model, files
        self.batch, self.keeps_memory = setting
        self.env = contest.environment(1, choices)

    def turn(self, case):
        task, _, shots, _ = CASES[case]
        work = os.path.join(self.folder, "peer")
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        env = {**self.env, **(KEEPS_MEMORY if self.keeps_memory else {})}
        command = contest.pinned(1) + [self.python, os.path.join(HERE, "harness_peer.py"), self.model, task, self.files[case], "--shots", str(shots),
                   "--batch", str(self.batch)]
        if task in TRAIN:
            command += ["--pool", shared(TRAIN[task])]
        if task == "mmlu":
            command += ["--subjects", *SUBJECTS]
        out, _, peak = run(command, work, env)
        return {**json.loads(out.splitlines()[-1]), "peak": peak}
