#!/usr/bin/env python3
"""`preregctl import`: results files of lm-evaluation-harness become an imported program; what disagrees is refused, an executed
program is never touched."""

import hashlib
import json
import math
import os
import random
import shutil

from lib import lab
from lib.lab import ANY, INDETERMINATE, INVALID, LOCK, OK, USAGE, VOID, equal, expect

PAPER = os.path.join(lab.TOP, "ops/programs/below_the_floor")

PROGRAM = """
[program]
name     = "tiny"
schema   = 1
question = "Is the mixture ahead on files from elsewhere?"
[[factor]]
name   = "arch"
levels = ["dense", "moe"]
[[factor]]
name      = "seed"
levels    = [1, 2]
replicate = true
[stage.train]
command = ["prereg-train"]
[stage.hella]
after   = ["train"]
command = ["prereg-eval"]
params  = { task = "hs_tiny", shots = 0 }
[stage.gsm]
after   = ["train"]
command = ["prereg-eval"]
params  = { task = "gsm_tiny" }
[stage.many]
after   = ["train"]
command = ["prereg-eval"]
[measure]
hella = { metric = "hella.acc_norm", items = 40, chance = 0.25, floor = 0.30 }
many  = { metric = "many.acc", items = 30, chance = 0.5, floor = 0.90 }
gsm   = { metric = "gsm.exact_match:strict", items = 8, counted = false }
loss  = { metric = "train.val_loss", better = "lower", counted = false }
[contrast]
arch = { between = { arch = ["moe", "dense"] }, over = "cleared" }
[counter]
k = { contrast = "arch", clears = "every_cell", binds = true }
[[input]]
name   = "cleared"
levels = [["some", "counter.k >= 1"], ["none", "counter.k == 0"]]
[[input]]
name   = "direction"
levels = [["moe", "contrast.arch.mean > 0"], ["dense", "otherwise"]]
[table]
inputs = ["cleared", "direction"]
rows = [["some", "moe", "moe"], ["some", "dense", "dense"], ["none", "moe", "below"], ["none", "dense", "below"]]
[outcome]
moe   = { prior = 0.2, title = "The mixture is ahead" }
dense = { prior = 0.2, title = "Dense is ahead" }
below = { prior = 0.5, title = "Below the floor" }
[validity]
active_match = { condition = "ratio(fact.train.params_active, arch, 'moe', 'dense') within 0.01", on_fail = "void" }
"""

CELLS = [(arch, seed) for arch in ("dense", "moe") for seed in (1, 2)]


# ── files as the harness writes them ─────────────────────────────────────────────────────────────────

def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def finish(sample):
    sample["doc_hash"] = sha(json.dumps(sample["doc"], indent=2, ensure_ascii=False))
    sample["prompt_hash"] = sha(sample["arguments"]["gen_args_0"]["arg_0"])
    sample["target_hash"] = sha(str(sample["target"]))
    return sample


def choice_sample(rng, doc_id, n_options, skill):
    """One multiple-choice item; the right option is the likeliest (also by length) in a share of `skill`."""
    texts = ["x" * rng.randint(1, 9) + chr(233) + str(i) for i in range(n_options)]
    gold = rng.randrange(n_options)
    best = gold if rng.random() < skill else (gold + 1) % n_options
    lls = [-30.0 - rng.random() if i != best else -0.5 for i in range(n_options)]
    doc = {"query": f"q{doc_id} \u00fc", "choices": texts, "gold": gold, "weight": 1e-07, "none": None}
    norm = max(range(n_options), key=lambda i: lls[i] / len(texts[i]))
    plain = max(range(n_options), key=lambda i: lls[i])
    sample = {"doc_id": doc_id, "doc": doc, "target": gold,
              "arguments": {f"gen_args_{i}": {"arg_0": doc["query"], "arg_1": " " + t} for i, t in enumerate(texts)},
              "resps": [[[str(v), "False"]] for v in lls], "filtered_resps": [[str(v), "False"] for v in lls]}
    sample.update(acc=float(plain == gold), acc_norm=float(norm == gold))
    return finish(sample)


def generation_sample(rng, doc_id, strict, skill):
    answer = f"work <<1+1=2>>\n#### {rng.choice(['4', '1,072'])}"
    number = answer.split("#### ")[1]
    right = rng.random() < skill
    said = number if right else "[invalid]" if strict else "9"
    doc = {"question": f"q{doc_id}", "answer": answer}
    sample = {"doc_id": doc_id, "doc": doc, "target": answer,
              "arguments": {"gen_args_0": {"arg_0": f"Question: q{doc_id}\nAnswer:", "arg_1": {"until": ["Question:"]}}},
              "resps": [[f" so {said}"]], "filtered_resps": [said], "exact_match": float(right)}
    return finish(sample)


def mean(xs):
    return sum(xs) / len(xs)


def stderr(xs):
    m = mean(xs)
    return math.sqrt(sum((x - m) ** 2 for x in xs) / (len(xs) - 1)) / math.sqrt(len(xs))


EXACT = {"metric": "exact_match", "aggregation": "mean", "ignore_case": True, "ignore_punctuation": False,
         "regexes_to_ignore": [",", "\\$", "(?s).*#### ", "\\.$"]}


class Run:
    """One cell's run of 0.4.3: samples by task, and the results file over them."""

    def __init__(self, name, skill, seed):
        rng = random.Random(f"{name} {seed}")
        self.name = name
        self.samples = {"hs_tiny": [choice_sample(rng, i, 4, skill) for i in range(40)],
                        "many_a": [choice_sample(rng, i, 2, 0.5) for i in range(18)],
                        "many_b": [choice_sample(rng, i, 2, 0.6) for i in range(12)],
                        "gsm_tiny": [generation_sample(rng, i, True, 0.3) for i in range(8)] +
                                    [generation_sample(rng, i, False, 0.4) for i in range(8)]}
        for task in ("many_a", "many_b"):
            for s in self.samples[task]:
                del s["acc_norm"]
        self.results = self.make_results()

    def make_results(self):
        found = {}
        for task, metrics in (("hs_tiny", ("acc", "acc_norm")), ("many_a", ("acc",)), ("many_b", ("acc",))):
            found[task] = {"alias": task}
            for metric in metrics:
                xs = [s[metric] for s in self.samples[task]]
                found[task][f"{metric},none"] = mean(xs)
                found[task][f"{metric}_stderr,none"] = stderr(xs)
        found["gsm_tiny"] = {"alias": "gsm_tiny"}
        for i, name in enumerate(("strict-match", "flexible-extract")):
            xs = [s["exact_match"] for s in self.samples["gsm_tiny"][8 * i:8 * i + 8]]
            found["gsm_tiny"][f"exact_match,{name}"] = mean(xs)
            found["gsm_tiny"][f"exact_match_stderr,{name}"] = stderr(xs)
        n = {"many_a": 18, "many_b": 12}
        found["many"] = {"alias": "many", "acc,none": sum(found[t]["acc,none"] * n[t] for t in n) / 30,
                         "acc_stderr,none": math.sqrt(sum((n[t] - 1) * n[t] * found[t]["acc_stderr,none"] ** 2
                                                          for t in n) / 28 / 30)}
        leaves = list(self.samples)
        return {"results": found, "group_subtasks": {"many": ["many_a", "many_b"], "hs_tiny": []},
                "configs": {t: {"task": t, "target_delimiter": " ", "num_fewshot": 0,
                                "metric_list": [EXACT] if t == "gsm_tiny" else [{"metric": "acc", "aggregation": "mean"}]}
                            for t in leaves},
                "versions": {t: 1.0 for t in leaves}, "n-shot": {**{t: 0 for t in leaves}, "many": 0},
                "n-samples": {t: {"original": k, "effective": k}
                              for t, k in (("hs_tiny", 40), ("many_a", 18), ("many_b", 12), ("gsm_tiny", 8))},
                "config": {"model": "hf", "model_args": f"pretrained=/models/{self.name},dtype=float32", "limit": None,
                           "batch_size": 8, "fewshot_seed": 1234},
                "git_hash": "abc1234", "date": 4102444800.5, "transformers_version": "4.44.2",
                "task_hashes": {t: sha("".join(s["doc_hash"] + s["prompt_hash"] + s["target_hash"] for s in self.samples[t]))
                                for t in leaves}}

    def write(self, place, folder):
        stamp = "2024-07-03T10-11-12.123456"
        place.write(f"{folder}/results_{stamp}.json", json.dumps(self.results, indent=2, ensure_ascii=False))
        for task, samples in self.samples.items():
            place.write(f"{folder}/samples_{task}_{stamp}.jsonl",
                        "".join(json.dumps(s, ensure_ascii=False) + "\n" for s in samples))


def train_records(place, cells=CELLS):
    records = [{"cell": f"arch={a},seed={s}", "stage": "train", "end": "done", "metrics": {"val_loss": 2.0},
                "facts": {"params_active": 100}} for a, s in cells]
    return place.write("train.json", json.dumps({"schema": 1, "program": "tiny", "label": "by hand", "records": records}))


def prepare(place, change=lambda cell, run: None):
    """The program and the runs of its four cells below runs/, after `change`."""
    grid = place.write("grid.toml", PROGRAM)
    for arch, seed in CELLS:
        run = Run(f"{arch}{seed}", 0.9 if arch == "moe" else 0.5, seed)
        change((arch, seed), run)
        run.write(place, f"runs/{arch}_{seed}")
    train_records(place)
    return grid


PATTERN = ("--pattern", "runs/{arch}_{seed}/results_*.json", "--samples", "runs/{arch}_{seed}/samples_*.jsonl",
           "--records", "train.json")


def refused(place, wanted, *words, arguments=PATTERN):
    """The import ends with this code, says these words on one line, and leaves no folder behind."""
    before = set(os.listdir(place.folder))
    run = place.ctl("import", "grid.toml", *arguments, "-o", "refused", wanted=wanted)
    equal(run.stderr.count("preregctl import: "), 1, "messages")
    for word in words:
        expect(word in run.stderr, f"{word!r} is not in: {run.stderr}")
    equal(set(os.listdir(place.folder)), before, "what lies in the folder")
    return run


# ── tests ────────────────────────────────────────────────────────────────────────────────────────────

def test_to_the_verdict(place):
    grid = prepare(place)
    answer = place.ctl_json("import", grid, *PATTERN, "-o", "out", "--label", "an archive")
    verdict = answer["verdict"]
    equal((verdict["outcome"], verdict["records"]), ("moe", "imported: an archive"), "outcome and label")
    equal(answer["exit_code"], OK, "exit code in the answer")
    equal(verdict["coverage"]["tasks"], {"planned": 16, "done": 16, "blocked": 0, "never_run": 0}, "coverage")
    files = {os.path.relpath(f["path"], place.folder) if f["path"].startswith("/") else f["path"]: f for f in answer["files"]}
    equal(len(files), 4 * 5 + 1, "files in the receipts")
    for path, receipt in files.items():
        with open(place.path(path), "rb") as f:
            equal(receipt["sha256"], hashlib.sha256(f.read()).hexdigest(), f"digest of {path}")
    for stage in ("hs_tiny", "many_a", "gsm_tiny"):
        for receipt in answer["files"]:
            if receipt.get("task") == stage:
                expect("summed" not in receipt["checked"] and "not " not in receipt["checked"], receipt["checked"])
    expect(any("locked at import" in w for w in answer["warnings"]), f"nothing is said of the lock: {answer['warnings']}")
    # The record of a group holds its members; the folder's records replay to the same verdict.
    with open(place.path("out", "records.json"), encoding="utf-8") as f:
        records = json.load(f)["records"]
    many = [r for r in records if r["stage"] == "many"][0]["metrics"]
    equal((many["acc"]["n"], many["acc:a"]["n"], many["acc:b"]["n"]), (30, 18, 12), "items of a group and its members")
    again = place.ctl_json("replay", place.path("out", "grid.toml"), place.path("out", "records.json"))["verdict"]
    equal(again, verdict, "verdict of the folder's records")


def test_report(place):
    """Imported in the first line, in the verdict, and beside every file's digest; nothing that only a run has."""
    prepare(place)
    place.ctl("import", "grid.toml", *PATTERN, "-o", "out/")
    with open(place.path("out", "report", "report.md"), encoding="utf-8") as f:
        md = f.read()
    expect(md.startswith("# IMPORTED RECORDS: moe"), md[:100])
    with open(place.path("out", "report", "report.html"), encoding="utf-8") as f:
        html = f.read()
    expect("<title>IMPORTED RECORDS" in html and "Report of a pre-registered" not in html, "the page's title")
    with open(place.path("out", "report", "receipts.json"), encoding="utf-8") as f:
        receipts = json.load(f)
    for receipt in receipts["files"]:
        expect(receipt["sha256"] in md and receipt["sha256"] in html, f"{receipt['path']} has no digest in the report")
    expect("UNVERIFIED" not in md and "locked at the import" in md.replace("at import", "at the import"), "history and lock")
    sums = place.run("preregctl", "report", "out")
    equal(sums.returncode, OK, f"the report again: {sums.stderr}")
    with open(place.path("out", "records.json"), "r+", encoding="utf-8") as f:
        f.truncate(100)
    torn = place.run("preregctl", "report", "out")
    expect(torn.returncode != OK and "records.json" in torn.stderr, f"a report of torn records: {torn.stderr}")


def micro_results(place, date):
    """Results files of micro's six cells, without samples."""
    for arch in ("dense", "moe"):
        for seed in (1, 2, 3):
            results = {"choices": {"acc,none": 0.6 if arch == "moe" else 0.5}, "schema": {"acc,none": 0.5}}
            place.write(f"runs/{arch}_{seed}/results_1.json", json.dumps(
                {"results": results, "n-samples": {t: {"original": 60, "effective": 60} for t in results}, "n-shot": {},
                 "config": {"limit": 60, "model_args": f"pretrained=/m/{arch}{seed}"}, "date": 1.5e9 if (arch, seed) == ("moe", 2) else date}))


def test_lock_before(place):
    """Under a lock that was there before: its root; and files older than it are told."""
    grid = place.prepare("micro")
    micro_results(place, 4102444800.5)
    records = [{"cell": f"arch={a},seed={s}", "stage": "train", "metrics": {}, "facts": {"params_active": 100}}
               for a in ("dense", "moe") for s in (1, 2, 3)]
    place.write("train.json", json.dumps({"schema": 1, "program": "micro", "records": records}))
    arguments = ("--pattern", "runs/{arch}_{seed}/results_*.json", "--records", "train.json")
    place.ctl("lock", grid)
    with open(grid + ".lock", encoding="utf-8") as f:
        root = json.load(f)["root"]
    answer = place.ctl_json("import", grid, *arguments, "-o", "out")
    equal((answer["root"], answer["locked_before"], answer["verdict"]["outcome"]), (root, True, "moe"), "root and outcome")
    expect(any("1 of 6 results files" in w and "before the plan was locked" in w for w in answer["warnings"]),
           f"the old file: {answer['warnings']}")
    place.edit(grid, "floor = 0.40", "floor = 0.39")
    place.ctl("import", grid, *arguments, "-o", "out2", wanted=LOCK)
    expect(not os.path.exists(place.path("out2")), "a folder was written under a broken lock")


def test_map(place):
    """A map by hand: a stage's task by another name, one stage a file, paths from the map's folder."""
    def rename(cell, run):
        for part in ("results", "configs", "versions", "n-shot", "n-samples", "task_hashes"):
            run.results[part]["hella_local"] = run.results[part].pop("hs_tiny")
        run.samples["hella_local"] = run.samples.pop("hs_tiny")
    prepare(place, rename)
    stamp = "2024-07-03T10-11-12.123456"
    files = []
    for arch, seed in CELLS:
        for stage in ("hella", "many", "gsm"):
            files.append({"cell": f"arch={arch},seed={seed}", "stage": stage, "results": f"{arch}_{seed}/results_{stamp}.json",
                          "samples": [f"{arch}_{seed}/samples_*.jsonl"]})
    table = {"schema": 1, "label": "x", "files": files, "records": ["../train.json"], "tasks": {"hella": "hella_local"},
             "metrics": {"gsm": {"exact_match:strict": "exact_match,flexible-extract"}}}
    place.write("runs/map.json", json.dumps(table))
    answer = place.ctl_json("import", "grid.toml", place.path("runs/map.json"), "-o", "out")
    equal(answer["verdict"]["outcome"], "moe", "outcome")
    flexible = Run("dense1", 0.5, 1).results["results"]["gsm_tiny"]["exact_match,flexible-extract"]
    with open(place.path("out", "records.json"), encoding="utf-8") as f:
        records = json.load(f)["records"]
    got = [r["metrics"]["exact_match:strict"]["value"] for r in records if r["stage"] == "gsm"][0]
    equal(got, flexible, "the metric that the map names")
    del table["tasks"]
    place.write("runs/map.json", json.dumps(table))
    refused(place, ANY, "hs_tiny", "hella_local", arguments=(place.path("runs/map.json"),))
    for change, word in (({"label": 3}, "label"), ({"fils": []}, "files"), ({"schema": 2}, "schema"),
                         ({"files": [{"cell": "arch=x,seed=1", "results": "r"}]}, "arch=x"),
                         ({"files": [{"cell": "arch=moe,seed=1", "results": "none.json"}]}, "none.json"),
                         ({"tasks": {"helle": "x"}}, "hella")):
        place.write("runs/map.json", json.dumps({**table, **change}))
        refused(place, ANY, word, arguments=(place.path("runs/map.json"),))


def test_tampered(place):
    """One change anywhere: refused with file, line and key."""
    def flip(task, line, change):
        def apply(cell, run):
            if cell == ("moe", 1):
                change(run.samples[task][line])
        return apply
    where = "moe_1/samples_hs_tiny"
    for change, words in (
            (lambda s: s.update(acc_norm=1.0 - s["acc_norm"]), (where, "line 4", "acc_norm")),
            (lambda s: s["doc"].update(query="another"), (where, "line 4", "doc_hash")),
            (lambda s: s["arguments"]["gen_args_0"].update(arg_0="another"), (where, "line 4", "prompt_hash")),
            (lambda s: s.update(target=(s["target"] + 1) % 4), (where, "line 4", "target_hash")),
            (lambda s: s["resps"][0][0].__setitem__(0, "-1.0"), (where, "line 4", "filtered_resps")),
            (lambda s: s.update(doc_id=5), (where, "line 6", "doc_id 5", "twice"))):
        prepare(place, flip("hs_tiny", 3, change))
        refused(place, LOCK, *words)
    prepare(place, flip("hs_tiny", 3, lambda s: s.pop("filtered_resps")))
    refused(place, ANY, where, "line 4", "filtered_resps")
    def whole_item(s):
        best = max(range(4), key=lambda i: float(s["filtered_resps"][i][0]))
        other = (best + 1) % 4
        s["resps"][best][0][0], s["resps"][other][0][0] = s["resps"][other][0][0], s["resps"][best][0][0]
        s["filtered_resps"] = [r[0] for r in s["resps"]]
        right = float(other == s["target"])
        s.update(acc=right, acc_norm=right)
    prepare(place, flip("hs_tiny", 3, whole_item))
    refused(place, LOCK, where, "samples give")
    prepare(place, flip("gsm_tiny", 2, lambda s: s.update(exact_match=1.0 - s["exact_match"])))
    refused(place, LOCK, "samples_gsm_tiny", "line 3", "exact_match")
    prepare(place, lambda cell, run: run.samples["many_b"].pop() if cell == ("moe", 1) else None)
    refused(place, LOCK, "11 samples of many_b", "12 items")


def test_tampered_results(place):
    """A results file that its samples, or its groups' tasks, do not give."""
    def change(task, key, by):
        def apply(cell, run):
            if cell == ("dense", 2):
                run.results["results"][task][key] += by
        return apply
    for task, key in (("hs_tiny", "acc_norm,none"), ("hs_tiny", "acc_norm_stderr,none"), ("gsm_tiny", "exact_match,strict-match"),
                      ("many", "acc,none"), ("many", "acc_stderr,none")):
        prepare(place, change(task, key, 1e-6))
        refused(place, LOCK, "dense_2", task, key.replace("_stderr", ""))
    prepare(place, lambda cell, run: run.results["task_hashes"].update(hs_tiny="0" * 64))
    refused(place, LOCK, "task_hashes of hs_tiny")
    prepare(place, lambda cell, run: run.results["n-samples"]["hs_tiny"].update(effective=41))
    refused(place, LOCK, "40 samples of hs_tiny", "41")


def test_bad_files(place):
    """Not JSON, cut short, of another shape, a number that is none: one message with the place."""
    grid = prepare(place)
    path = place.path("runs/moe_1/results_2024-07-03T10-11-12.123456.json")
    with open(path, encoding="utf-8") as f:
        whole = f.read()
    for text, word in ((whole[:len(whole) // 2], "line"), ("[]", "results"), ("{}", "results"), ("", "line 1"),
                       (whole.replace('"acc,none": 0', '"acc,none": "0', 1).replace('"acc,none": "0.', '"acc,none": "0.", "z": 0.', 1),
                        "acc,none")):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        refused(place, ANY, "moe_1/results", word)
    with open(path, "w", encoding="utf-8") as f:
        f.write(whole)
    samples = path.replace("results_", "samples_hs_tiny_") + "l"
    with open(samples, "r+", encoding="utf-8") as f:
        f.truncate(os.path.getsize(samples) - 40)
    refused(place, ANY, "samples_hs_tiny", "line 40")
    place.ctl("import", grid, "-o", "out", wanted=USAGE)
    place.ctl("import", grid, *PATTERN, wanted=USAGE)
    place.ctl("import", place.write("no.toml", "[program]\n"), *PATTERN, "-o", "out", wanted=INVALID)
    refused(place, ANY, "seeds", arguments=("--pattern", "runs/{arch}_{seeds}/results_*.json"))
    refused(place, ANY, "arch=dense,seed=1", arguments=("--pattern", "runs/{arch}_1/results_*.json"))
    refused(place, ANY, "no file", arguments=("--pattern", "nowhere/{arch}_{seed}/*.json"))


def test_two_files(place):
    prepare(place)
    place.write("runs/moe_2/results_2025.json", "{}")
    refused(place, ANY, "two files", "arch=moe,seed=2", "results_2025.json")
    # By a map, and by records beside results: one cell and stage, two sources; one file for two cells.
    stamp = "2024-07-03T10-11-12.123456"
    one = {"cell": "arch=moe,seed=1", "stage": "hella", "results": f"runs/moe_1/results_{stamp}.json"}
    for other in ({**one, "results": f"runs/dense_1/results_{stamp}.json"}, {**one, "stage": "hella"}):
        place.write("map.json", json.dumps({"schema": 1, "files": [one, other]}))
        refused(place, ANY, "two files for arch=moe,seed=1 hella", arguments=("map.json",))
    place.write("map.json", json.dumps({"schema": 1, "files": [one, {**one, "cell": "arch=moe,seed=2"}]}))
    refused(place, ANY, "is given for arch=moe,seed=", arguments=("map.json",))
    record = {"cell": "arch=moe,seed=1", "stage": "hella", "metrics": {"acc_norm": 1}}
    place.write("more.json", json.dumps({"schema": 1, "program": "tiny", "records": [record]}))
    place.write("map.json", json.dumps({"schema": 1, "files": [one], "records": ["more.json"]}))
    refused(place, ANY, "two files for arch=moe,seed=1 hella", "more.json", arguments=("map.json",))


def test_a_copy(place):
    """One run is one cell's, under whatever name it lies."""
    prepare(place)
    name = "results_2024-07-03T10-11-12.123456.json"
    shutil.copy(place.path("runs/moe_1", name), place.path("runs/moe_2", name))
    refused(place, ANY, "moe_2/results_", "byte for byte the file of arch=moe,seed=1")


def test_left_out(place):
    """Fewer items than there are, without a limit that says so: told."""
    prepare(place, lambda _cell, run: run.results["n-samples"]["hs_tiny"].update(original=60))
    answer = place.ctl_json("import", "grid.toml", *PATTERN, "-o", "out")
    said = "arch=moe,seed=1 hella: items were left out, and no limit is given: 40 were scored"
    expect(said in answer["warnings"], f"{answer['warnings']}")
    expect(not any("many" in w and "left out" in w for w in answer["warnings"]), f"{answer['warnings']}")


def test_nan(place):
    """What Python writes for a loss that ran away is no number: the gate is open, and no outcome binds by it."""
    def lose(cell, run):
        if cell == ("moe", 1):
            run.results["results"]["hs_tiny"]["acc_norm,none"] = float("nan")
    prepare(place, lose)
    arguments = (*PATTERN[:2], *PATTERN[4:])
    answer = place.ctl_json("import", "grid.toml", *arguments, "-o", "out", wanted=INDETERMINATE)
    gate = [g for g in answer["verdict"]["gates"] if (g["measure"], g["cell"]) == ("hella", "arch=moe,seed=1")][0]
    equal((gate["cleared"], gate["score"]), (None, None), "the gate")
    refused(place, LOCK, "hs_tiny", "acc_norm,none")


def test_missing_cells(place):
    """A cell without files is undetermined, never excluded, and stands in every count."""
    prepare(place)
    os.rename(place.path("runs/moe_2"), place.path("runs/aside"))
    answer = place.ctl_json("import", "grid.toml", *PATTERN, "-o", "out", wanted=INDETERMINATE)
    equal(answer["verdict"]["coverage"]["tasks"]["pending"], 3, "tasks without a record")
    equal(answer["verdict"]["coverage"]["counted"]["excluded"], 0, "excluded")
    expect(any("3 of 16 planned tasks" in w for w in answer["warnings"]), f"{answer['warnings']}")
    expect(any("arch=moe,seed=2" in w for w in answer["warnings"]), f"{answer['warnings']}")
    with open(place.path("out", "report", "report.md"), encoding="utf-8") as f:
        md = f.read()
    for words in ("No record", "no record was given", "without a record"):
        expect(words in md, f"the report does not say {words!r}")
    train_records(place, CELLS[:2])
    place.ctl("import", "grid.toml", *PATTERN, "-o", "out", "--replace", wanted=VOID)  # params_active is not known


def test_settings_differ(place):
    def change(cell, run):
        if cell[0] == "moe":
            run.results["n-shot"].update(hs_tiny=5)
            run.results["config"]["model_args"] = run.results["config"]["model_args"].replace("float32", "bfloat16")
            run.results["git_hash"] = "fff"
    prepare(place, change)
    run = place.ctl("import", "grid.toml", *PATTERN, "-o", "out")
    for words in ("configs differ in hella: n-shot 0 (2, first arch=dense,seed=1) and 5 (2, first arch=moe,seed=1)",
                  "model_args dtype=float32", "git_hash abc1234", "the plan says shots = 0 for hella, which was run with n-shot 5"):
        expect(words in run.stdout, f"{words!r} is not said:\n{run.stdout}")
    expect("configs differ in many: n-shot" not in run.stdout, "a setting that agrees is told")
    with open(place.path("out", "report", "report.md"), encoding="utf-8") as f:
        expect("n-shot 0 (2" in f.read(), "the report says nothing of it")
    def same_model(_cell, run):
        run.results["config"]["model_args"] = "pretrained=/models/one"
    prepare(place, same_model)
    run = place.ctl("import", "grid.toml", *PATTERN, "-o", "out", "--replace")
    expect("one model for two cells: /models/one" in run.stdout, run.stdout)
    def adapters(cell, run):  # one base, an adapter of each cell's own: no model is used twice
        run.results["config"]["model_args"] = f"tokenizer=/t,pretrained=/base,peft=/adapter/{cell[0]}-{cell[1]},dtype=float32"
    prepare(place, adapters)
    run = place.ctl("import", "grid.toml", *PATTERN, "-o", "out", "--replace")
    expect("one model for two cells" not in run.stdout, run.stdout)
    def one_adapter(cell, run):
        args = ["pretrained=/base", "peft=/adapter", "tokenizer=/t/" + cell[0]]
        run.results["config"]["model_args"] = ",".join(args if cell[0] == "moe" else reversed(args))
    prepare(place, one_adapter)
    run = place.ctl("import", "grid.toml", *PATTERN, "-o", "out", "--replace")
    expect("one model for two cells: /base with peft /adapter for" in run.stdout, run.stdout)
    def long_name(_cell, run):
        run.results["config"]["model_args"] = "pretrained=/models/x" + "\u0439" * 60  # cut within a character
    prepare(place, long_name)
    run = place.ctl("import", "grid.toml", *PATTERN, "-o", "out", "--replace")
    expect("one model for two cells: /models/x\u0439" in run.stdout, run.stdout)


def test_limited(place):
    """A limited run: loud where the plan's items show it, refused where nothing would; a limit beyond the items is none."""
    def limit(of):
        def apply(_cell, run):
            run.samples["hs_tiny"] = run.samples["hs_tiny"][:of]
            run.results = run.make_results()
            run.results["config"]["limit"] = of
            run.results["n-samples"]["hs_tiny"]["effective"] = min(of, 40)
        return apply
    prepare(place, limit(50))
    answer = place.ctl_json("import", "grid.toml", *PATTERN, "-o", "out")
    expect(not any("limited" in w for w in answer["warnings"]), f"{answer['warnings']}")
    prepare(place, limit(20))
    answer = place.ctl_json("import", "grid.toml", *PATTERN, "-o", "limited", wanted=INDETERMINATE)
    equal([w for w in answer["warnings"] if "limited" in w], ["limited run: hella was scored on 20 items only (limit 20)"],
          "warnings of it")
    gate = [g for g in answer["verdict"]["gates"] if g["measure"] == "hella"][0]
    equal((gate["cleared"], gate["n"]), (None, 20), "a gate on 20 of 40 items")
    with open(place.path("limited", "report", "report.md"), encoding="utf-8") as f:
        expect("limited run: hella" in f.read(), "the report says nothing of it")
    def uncounted(cell, run):
        limit(20)(cell, run)
        del run.results["n-samples"]
    prepare(place, uncounted)
    without_samples = (*PATTERN[:2], *PATTERN[4:])
    refused(place, ANY, "limited run", "n-samples", arguments=without_samples)
    answer = place.ctl_json("import", "grid.toml", *PATTERN, "-o", "counted", wanted=INDETERMINATE)
    gate = [g for g in answer["verdict"]["gates"] if g["measure"] == "hella"][0]
    equal((gate["cleared"], gate["n"]), (None, 20), "a gate on items that only the samples count")
    place.edit(place.path("grid.toml"), 'acc_norm", items = 40,', 'acc_norm",')
    refused(place, ANY, "limited run", "measure hella", "items")
    place.edit(place.path("grid.toml"), "shots = 0 }", "shots = 0, items = { count = 20, seed = 1 } }")
    run = place.run("preregctl", "import", "grid.toml", *PATTERN, "-o", "planned")
    expect(run.returncode in (OK, INDETERMINATE) and "limited run: hella" not in run.stdout, f"a planned subset: {run.stdout}{run.stderr}")


def test_older_shapes(place):
    """0.4.0: samples as one array with bare answers, no counts; 0.3: bare keys. 0.4.12: name, sample_len, filter, metrics."""
    def bare(v):
        return [[float(v[0][0]), v[0][1] == "True"]] if isinstance(v[0], list) else v
    def old(_cell, run):
        run.results.pop("n-samples")
        run.results.pop("task_hashes")
        for task, samples in run.samples.items():
            for s in samples:
                for key in ("doc_hash", "prompt_hash", "target_hash"):
                    del s[key]
                s["arguments"] = [list(a.values()) for a in s["arguments"].values()]
                s["resps"] = [bare(r) for r in s["resps"]]
                s["filtered_resps"] = [r[0] for r in s["resps"]] if task != "gsm_tiny" else s["filtered_resps"]
        write = run.write
        def write_old(place, folder):
            write(place, folder)
            for task, samples in run.samples.items():
                os.unlink(place.path(folder, f"samples_{task}_2024-07-03T10-11-12.123456.jsonl"))
                place.write(f"{folder}/samples_pretrained__models_{task}.jsonl", json.dumps(samples, indent=2))
        run.write = write_old
    prepare(place, old)
    answer = place.ctl_json("import", "grid.toml", *PATTERN, "-o", "out")
    equal(answer["verdict"]["outcome"], "moe", "outcome of 0.4.0's files")
    expect(not any("stands in" in n for n in answer["verdict"]["notes"]), "items stand in that the samples count")
    bare = place.ctl_json("import", "grid.toml", *PATTERN[:2], *PATTERN[4:], "-o", "bare")["verdict"]
    expect(any("stands in" in n for n in bare["notes"]), "the plan's items stand in, and nobody says so")

    def new(_cell, run):
        for task, entry in run.results["results"].items():
            run.results["results"][task] = {"name": task, "alias": " - " + task, "sample_len": entry.get("n", 8 if task == "gsm_tiny"
                                            else 30 if task == "many" else len(run.samples[task])),
                                            **{k: v for k, v in entry.items() if k != "alias"}}
        run.results["results"]["many"]["sample_count"] = {"acc,none": 30}
        run.results["results"]["tag"] = {" ": " ", "alias": "tag"}
        run.results["results"]["many_a"]["acc_stderr,none"] = "N/A"
        run.results["results"]["many"]["acc_stderr,none"] = "N/A"
        run.results["results"]["hs_tiny"]["acc_stderr,none"] = 0.0
        run.results["lm_eval_version"] = "0.4.12"
        run.results["tokenizer_eos_token"] = ["</s>", "2"]
        for task, samples in run.samples.items():
            for i, s in enumerate(samples):
                s["target"] = str(s["target"])
                s["filter"] = "none" if task != "gsm_tiny" else ("strict-match", "flexible-extract")[i // 8]
                s["metrics"] = [m for m in ("acc", "acc_norm", "exact_match") if m in s]
    prepare(place, new)
    for arch, seed in CELLS:
        for name in os.listdir(place.path(f"runs/{arch}_{seed}")):
            if "pretrained" in name:
                os.unlink(place.path(f"runs/{arch}_{seed}", name))
    equal(place.ctl_json("import", "grid.toml", *PATTERN, "-o", "out", "--replace")["verdict"]["outcome"], "moe",
          "outcome of 0.4.12's files")

    def ancient(_cell, run):
        bare_keys = {}
        for task, entry in run.results["results"].items():
            if task in ("hs_tiny", "many"):
                bare_keys[task] = {k.split(",")[0]: v for k, v in entry.items() if k != "alias"}
        run.results = {"results": bare_keys, "versions": {"hs_tiny": 0}, "config": {"model": "gpt2", "limit": None}}
    prepare(place, ancient)
    arguments = (*PATTERN[:2], *PATTERN[4:])
    answer = place.ctl_json("import", "grid.toml", *arguments, "-o", "out", "--replace")
    equal(answer["verdict"]["outcome"], "moe", "outcome of 0.3's files")


def inspect_log(run, change=lambda log: None):
    """A log of Inspect over the items of hs_tiny."""
    xs = [s["acc_norm"] for s in run.samples["hs_tiny"]]
    log = {"version": 2, "status": "success", "plan": {},
           "eval": {"task": "hs_tiny", "model": f"hf/{run.name}", "created": "2026-01-02T03:04:05+00:00", "config": {"epochs": 1}},
           "results": {"total_samples": 40, "completed_samples": 40, "scores": [
               {"name": "choice", "scorer": "choice", "metrics": {"accuracy": {"name": "accuracy", "value": mean(xs)},
                                                                  "stderr": {"name": "stderr", "value": stderr(xs)}}}]},
           "samples": [{"id": i, "epoch": 1, "scores": {"choice": {"value": "C" if x else "I"}}} for i, x in enumerate(xs)]}
    change(log)
    return log


def prepare_inspect(place, change=lambda log: None):
    grid = place.write("grid.toml", PROGRAM.replace("hella.acc_norm", "hella.accuracy"))
    for arch, seed in CELLS:
        run = Run(f"{arch}{seed}", 0.9 if arch == "moe" else 0.5, seed)
        place.write(f"logs/{arch}_{seed}.json", json.dumps(inspect_log(run, change)))
    train_records(place)
    return grid


LOGS = ("--pattern", "logs/{arch}_{seed}.json", "--records", "train.json")


def test_inspect(place):
    """Logs of Inspect: figures computed again from the samples, a limited run and a failed one refused."""
    prepare_inspect(place)
    answer = place.ctl_json("import", "grid.toml", *LOGS, "-o", "out", wanted=INDETERMINATE)
    files = [f for f in answer["files"] if f["kind"] == "results"]
    equal({(f["format"], f["checked"]) for f in files}, {("Inspect log", "choice: 2 figures from 40 samples")}, "receipts")
    gates = {g["cell"]: g for g in answer["verdict"]["gates"] if g["measure"] == "hella"}
    equal(len(gates), 4, "gates")
    expect(all(g["n"] == 40 and g["cleared"] is True for c, g in gates.items() if "moe" in c), f"{gates}")

    def flip(log):
        log["samples"][7]["scores"]["choice"]["value"] = "I" if log["samples"][7]["scores"]["choice"]["value"] == "C" else "C"
    prepare_inspect(place, flip)
    refused(place, LOCK, "score choice", "accuracy", "its samples give", arguments=LOGS)
    prepare_inspect(place, lambda log: log.update(status="cancelled"))
    refused(place, ANY, "cancelled", arguments=LOGS)
    prepare_inspect(place, lambda log: log["eval"]["config"].update(limit=40))
    place.edit(place.path("grid.toml"), 'hella.accuracy", items = 40,', 'hella.accuracy",')
    refused(place, ANY, "a limited run", arguments=LOGS)


def test_every_eval_ever(place):
    """What export wrote of a program is read back: the same scores, under the names of the measures' metrics."""
    prepare_inspect(place)
    first = place.ctl_json("import", "grid.toml", *LOGS, "-o", "out", wanted=INDETERMINATE)
    folder = place.ctl_json("export", "--format", "every-eval-ever", place.path("out"), "-o", place.path("made"))["folder"]
    place.edit(place.path("grid.toml"), 'task = "hs_tiny"', 'task = "hella"')
    answer = place.ctl_json("import", "grid.toml", "--pattern", f"{folder}/arch={{arch}},seed={{seed}}.json", "-o", "again",
                            wanted=VOID)  # a training's facts are in no such file
    scores = [{(g["measure"], g["cell"]): (g["score"], g["n"]) for g in a["verdict"]["gates"]} for a in (first, answer)]
    equal(scores[1], scores[0], "scores")
    expect(any("states its figures" in w for w in answer["warnings"]), f"{answer['warnings']}")
    file = os.path.join(folder, "arch=moe,seed=1.json")
    with open(file, encoding="utf-8") as f:
        log = json.load(f)
    log["schema_version"] = "0.4.0"
    with open(file, "w", encoding="utf-8") as f:
        json.dump(log, f)
    refused(place, ANY, "schema_version", arguments=("--pattern", f"{folder}/arch={{arch}},seed={{seed}}.json"))


def test_never_executed(place):
    """Never into an executed program, in either direction."""
    grid = prepare(place)
    place.ctl("import", grid, *PATTERN, "-o", "out")
    refused_again = place.ctl("import", grid, *PATTERN, "-o", "out", wanted=ANY)
    expect("--replace" in refused_again.stderr, refused_again.stderr)
    place.write("out/notes.txt", "mine")
    run = place.ctl("import", grid, *PATTERN, "-o", "out", "--replace", wanted=ANY)
    expect("notes.txt" in run.stderr and os.path.exists(place.path("out/notes.txt")), f"notes beside an import: {run.stderr}")
    os.unlink(place.path("out/notes.txt"))
    place.ctl("import", grid, *PATTERN, "-o", "runs", "--replace", wanted=ANY)
    expect(os.path.exists(place.path("runs/moe_1")), "a folder that is no import was replaced")
    run = place.run("preregd", "submit", place.path("out", "grid.toml"))
    expect(run.returncode != OK and "made for imported records" in run.stderr, f"submit of an imported folder: {run.stdout}{run.stderr}")
    # Its lock alone, taken elsewhere, does not run either.
    os.mkdir(place.path("elsewhere"))
    for name in ("grid.toml", "grid.toml.lock"):
        with open(place.path("out", name), "rb") as f, open(place.path("elsewhere", name), "wb") as g:
            g.write(f.read())
    run = place.run("preregd", "submit", place.path("elsewhere", "grid.toml"))
    expect(run.returncode == LOCK and "imported" in run.stderr, f"submit under an import's lock: {run.stdout}{run.stderr}")
    expect(not os.path.exists(place.state), "a daemon was started for what is refused")
    # Beside an executed history, in it, and in the state folder: the plan is what is compared, not the root.
    programs = place.path("state", "programs", "tiny-12345678")
    os.makedirs(programs, exist_ok=True)
    for name in ("grid.toml", "grid.toml.lock"):
        with open(place.path("out", name), "rb") as f, open(os.path.join(programs, name), "wb") as g:
            g.write(f.read())
    place.write("state/programs/tiny-12345678/journal.jsonl", "{}\n")
    refused(place, ANY, "executed history")
    run = place.ctl("import", os.path.join(programs, "grid.toml"), *PATTERN, "-o", "out4", wanted=ANY)
    expect("executed" in run.stderr, run.stderr)
    run = place.ctl("import", grid, *PATTERN, "-o", programs, "--state", place.path("other"), "--replace", wanted=ANY)
    expect("executed" in run.stderr, run.stderr)
    place.ctl("import", grid, *PATTERN, "-o", place.path("other/programs/x"), "--state", place.path("other"), wanted=ANY)
    place.ctl("import", grid, *PATTERN, "-o", "out4", "--state", place.path("other"))
    # An imported folder among the executed ones is not taken for one.
    os.rename(place.path("out4"), place.path("other-program"))
    os.makedirs(place.path("third", "programs"))
    with open(place.path("other-program", "grid.toml.lock"), encoding="utf-8") as f:
        name = "tiny-" + json.load(f)["root"][:8]
    os.rename(place.path("other-program"), place.path("third", "programs", name))
    run = place.ctl("rebuild", place.path("third"), wanted=ANY)
    expect("imported" in run.stderr, run.stderr)


def test_the_paper(place):
    """below_the_floor from files shaped as its author had them: results of three benchmarks, GSM8K blocked, the rest by hand."""
    with open(os.path.join(PAPER, "replay/records.json"), encoding="utf-8") as f:
        paper = json.load(f)
    by_hand = [r for r in paper["records"] if r["stage"] in ("train", "gsm8k")]
    place.write("hand.json", json.dumps({**paper, "records": by_hand}))
    items = {"mmlu": 14042, "hellaswag": 10042, "winogrande": 1267}
    cells = {}
    for r in paper["records"]:
        if r["stage"] not in ("train", "gsm8k"):
            cells.setdefault(r["cell"], {})[r["stage"]] = r["metrics"]
    for cell, stages in cells.items():
        results = {}
        for stage, metrics in stages.items():
            results[stage] = {"alias": stage}
            for metric, v in metrics.items():
                results[stage][f"{metric},none"] = v["value"]
                results[stage][f"{metric}_stderr,none"] = math.sqrt(v["value"] * (1 - v["value"]) / (items[stage] - 1))
        arch, lr, seed = (part.split("=")[1] for part in cell.split(","))
        text = json.dumps({"results": results, "n-shot": {"mmlu": 5, "hellaswag": 0, "winogrande": 0}, "n-samples": {
            s: {"original": n, "effective": n} for s, n in items.items()},
            "config": {"model": "hf", "model_args": f"pretrained=/ckpt/{cell.replace(',', '_').replace('=', '')}", "limit": None}})
        place.write(f"eval/{arch}-lr{lr}-s{seed}/results_2025-01-01T00-00-00.json", text)
    arguments = ("--pattern", "eval/{arch}-lr{lr}-s{seed}/results_*.json", "--records", "hand.json")
    answer = place.ctl_json("import", os.path.join(PAPER, "grid.toml"), *arguments, "-o", "out", "--label", "the author's runs")
    verdict = answer["verdict"]
    equal((verdict["outcome"], verdict["rows_fired"]), ("O4", [4, 8, 12, 16]), "outcome and rows")
    equal(verdict["coverage"]["tasks"], {"planned": 60, "done": 48, "blocked": 12, "never_run": 0}, "coverage")


lab.main(test_to_the_verdict, test_report, test_lock_before, test_map, test_tampered, test_tampered_results, test_bad_files,
         test_two_files, test_a_copy, test_left_out, test_nan, test_missing_cells, test_settings_differ, test_limited, test_older_shapes,
         test_inspect, test_every_eval_ever, test_never_executed, test_the_paper)
