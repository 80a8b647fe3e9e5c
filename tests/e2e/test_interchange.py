#!/usr/bin/env python3
"""Models out of and into the workers by hand and by parameter: export, --init, init, generate, loss, and evaluation of an export."""

import json
import os
import shutil
import subprocess

from lib import lab
from lib.lab import SHARED, equal, expect

USAGE, DATA, UNMEASURABLE = 64, 65, 69
SMALL = {"layers": 1, "width": 32, "heads": 2, "ffn": 48, "context": 64, "batch_tokens": 512, "lr": 0.003, "seed": 3,
         "horizon": {"contract": "fixed", "tokens": 15360}, "data": "text"}
MOE = {**{k: v for k, v in SMALL.items() if k != "ffn"}, "experts": 4, "top_k": 2, "expert_ffn": 24}
ITEMS = [{"query": f"the {a} sees", "choices": [" a ball", " xqzv"], "gold": i % 2} for i, a in enumerate(["cat", "dog", "owl"])]


def corpus(place):
    words = "the cat sees a red ball while the dog runs home and an owl sleeps".split()
    lines = [{"text": " ".join(words[(i * j + i) % len(words)] for j in range(30)) + "."} for i in range(1, 400)]
    return place.write("text.jsonl", "".join(json.dumps(line) + "\n" for line in lines))


def attempt(place, name, params, data=None, inputs=None, words=(), worker="prereg-train", wanted=0):
    """Runs one task in a folder of its own and returns (folder, run)."""
    folder = place.path(name)
    os.makedirs(folder)
    data = {"text": corpus(place), **(data or {})}
    task = {"protocol": 1, "attempt": name, "attempt_no": 1, "threads": 1, "params": params, "resume": [],
            "data": {key: {"path": path} for key, path in data.items()}, "inputs": inputs or {}}
    place.write(f"{name}/task.json", json.dumps(task))
    env = {**place.env, "PREREG_TASK": "task.json", "PREREG_EVENTS": "events.jsonl"}
    return folder, place.must(wanted, worker, *words, cwd=folder, env=env)


def read(*parts):
    with open(os.path.join(*parts), "rb") as f:
        return f.read()


def result(folder):
    return json.loads(read(folder, "result.json"))


def test_export(place):
    """The same folder twice, none over another, what cannot be said by name."""
    ours, _ = attempt(place, "train", SMALL)
    hf = place.path("hf")
    place.must(0, "prereg-train", "export", "--hf", hf, ours)
    names = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    equal(sorted(os.listdir(hf)), names, "files of an export")
    place.must(0, "prereg-train", "export", "--hf", place.path("again"), hf)
    for name in names:
        equal(read(hf, name), read(place.path("again"), name), f"{name} of an export's export")
    run = place.must(USAGE, "prereg-train", "export", "--hf", hf, ours)
    expect("--force" in run.stderr, run.stderr)
    place.must(0, "prereg-train", "export", "--force", "--hf", hf, ours)
    run = place.must(USAGE, "prereg-train", "export", "--force", "--hf", ours, hf)
    expect("not an earlier export" in run.stderr, run.stderr)
    for words in ([ours], ["--hf"], ["--hf", "x"], ["--hf", "x", "--frce", ours], ["--hf", "x", ours, ours],
                  ["--hf", "x", "--tokenizer", "t", "--no-tokenizer", ours]):
        place.must(USAGE, "prereg-train", "export", *words)
    place.must(DATA, "prereg-train", "export", "--hf", "x", place.path("absent"))
    for change, says in (({"dense_layers": 1, "ffn": 48, "layers": 2}, "dense_layers"), ({"shared": 1}, "shared"),
                         ({"renormalise": False}, "renormalise"), ({"bias_update_rate": 0.01}, "bias_update_rate")):
        folder, _ = attempt(place, f"no_{says}", {**MOE, **change})
        run = place.must(UNMEASURABLE, "prereg-train", "export", "--hf", place.path("no"), folder)
        expect(says in run.stderr, f"{says}: {run.stderr}")
    expect(not os.path.exists(place.path("no")), "a refused export left a folder")
    # No room after 8 KiB of a file: said, and nothing is left.
    limited = f'trap "" XFSZ; ulimit -f 16; exec "{place.bin}/prereg-train" export --hf hf.full "{ours}"'
    run = subprocess.run(["sh", "-c", limited], cwd=place.folder, env=place.env, capture_output=True, text=True)
    expect(run.returncode == lab.ANY and "model.safetensors" in run.stderr, f"exit {run.returncode}: {run.stderr}")
    expect(not [n for n in os.listdir(place.folder) if n.startswith("hf.")], "an export left something beside its folder")


def test_init(place):
    """A run that learns nothing ends where it started; a mismatch is named; so is another tokenizer."""
    for name, params in (("dense", SMALL), ("moe", MOE)):
        still = {**params, "lr": 0}
        ours, _ = attempt(place, name, params)
        hf = place.path(name + "_hf")
        place.must(0, "prereg-train", "export", "--hf", hf, ours)
        for start in (ours, hf):
            folder, _ = attempt(place, f"{name}_from_{os.path.basename(start)}", {**still, "init": "start"}, {"start": start})
            equal(read(folder, "model/model.bin"), read(ours, "model/model.bin"), f"weights of {start}, read back")
            expect("start" in result(folder)["read"], "the digest of the start is not in the result")
        folder, _ = attempt(place, f"{name}_by_hand", still, words=["--init", hf])
        equal(read(folder, "model/model.bin"), read(ours, "model/model.bin"), f"weights of {hf}, by hand")
    hf = place.path("dense_hf")
    other = {**SMALL, "layers": 2, "ffn": 64, "init": "start"}
    folder, run = attempt(place, "mismatch", other, {"start": hf}, wanted=USAGE)
    expect("layers is 1, the run's 2" in run.stderr and "ffn is 48, the run's 64" in run.stderr, run.stderr)
    told = json.loads(place.must(0, "prereg-train", "--describe", "task.json", cwd=folder).stdout)
    equal([e["key"] for e in told["errors"]], ["init", "init"], "faults under --describe")
    attempt(place, "twice", {**SMALL, "init": "start"}, {"start": hf}, words=["--init", hf], wanted=USAGE)
    attempt(place, "no_name", {**SMALL, "init": "strat"}, {"start": hf}, wanted=USAGE)
    attempt(place, "no_model", SMALL, words=["--init", place.path("absent")], wanted=DATA)
    shutil.copytree(hf, place.path("nan"))
    with open(place.path("nan", "model.safetensors"), "r+b") as f:
        f.seek(-4, 2)
        f.write(b"\x00\x00\xc0\x7f")
    _, run = attempt(place, "not_finite", {**SMALL, "init": "start"}, {"start": place.path("nan")}, wanted=DATA)
    expect("tensor model.norm.weight" in run.stderr, run.stderr)


def test_evaluation(place):
    """An export scores as the model it came from, item by item; its digest stands in the header."""
    ours, _ = attempt(place, "train", SMALL)
    hf = place.path("hf")
    place.must(0, "prereg-train", "export", "--hf", hf, ours)
    items = place.write("items.jsonl", "".join(json.dumps(item) + "\n" for item in ITEMS))
    params = {"task": "choices", "data": "items"}
    a, _ = attempt(place, "a", params, {"items": items}, {"train": ours}, worker="prereg-eval")
    b, _ = attempt(place, "b", {**params, "model": "other"}, {"items": items, "other": hf}, worker="prereg-eval")
    equal(result(b)["metrics"], result(a)["metrics"], "metrics of the export")
    first, second = (read(folder, "items.jsonl").split(b"\n") for folder in (a, b))
    equal(second[1:], first[1:], "items of the export")
    one, two = json.loads(first[0]), json.loads(second[0])
    equal(two["model"], one["model"], "digest of the same numbers")
    expect(two["read_model"] != one["read_model"], "the header does not hold the digest of the data")
    equal(two["read_model"], result(b)["read"]["other"], "digest of the data in header and result")
    shutil.copytree(hf, place.path("bare"), ignore=shutil.ignore_patterns("tokenizer*"))
    bare = {"items": items, "other": place.path("bare"), "tok": os.path.join(hf, "tokenizer.json")}
    _, run = attempt(place, "c", {**params, "model": "other"}, bare, worker="prereg-eval", wanted=USAGE)
    expect("params.tokenizer" in run.stderr, run.stderr)
    d, _ = attempt(place, "d", {**params, "model": "other", "tokenizer": "tok"}, bare, worker="prereg-eval")
    equal(result(d)["metrics"], result(a)["metrics"], "metrics with the tokenizer from elsewhere")
    # Less context than the model takes: requests are cut at the left; more there is not.
    hf_data = {"items": items, "other": hf}
    e, _ = attempt(place, "e", {**params, "model": "other", "context": 16}, hf_data, worker="prereg-eval")
    cut = [result(folder)["facts"]["cut_tokens"] for folder in (a, e)]
    expect(cut[0] == 0 and cut[1] > 0, f"tokens cut at 64 and at 16: {cut}")
    # What would stop a run is known when it is described: an export is there before anything is trained.
    for name, change, data, wanted, says in (
            ("too_long", {"context": 65}, hf_data, USAGE, "the model takes 64"),
            ("no_words", {}, bare, USAGE, "params.tokenizer"),
            ("no_data", {"tokenizer": "items"}, hf_data, DATA, "tokenizer"),
            ("no_model", {}, {"items": items, "other": place.folder}, DATA, "no model")):
        folder, run = attempt(place, name, {**params, "model": "other", **change}, data, worker="prereg-eval", wanted=wanted)
        told = json.loads(place.must(0, "prereg-eval", "--describe", "task.json", cwd=folder).stdout)
        expect(says in run.stderr and says in told["errors"][0]["why"], f"{name}: {run.stderr} {told}")


def test_program(place):
    """A program whose cells start from exports, and which scores one beside them: locked, run to a verdict."""
    grid = place.prepare_small()
    data = os.path.join(os.path.dirname(grid), "data")
    shape = {**SMALL, "layers": 2, "width": 64, "heads": 4, "ffn": 176}
    moe = {**shape, "experts": 4, "top_k": 2, "expert_ffn": 88}
    del moe["ffn"]
    for name, params in (("dense", shape), ("moe", moe)):
        ours, _ = attempt(place, name, params)
        place.must(0, "prereg-train", "export", "--hf", os.path.join(data, "start_" + name), ours)
    place.edit(grid, "[stage.train]\n", 'start_dense = "data/start_dense"\nstart_moe = "data/start_moe"\n\n[stage.train]\n')
    place.edit(grid, "dense = { ffn = 176 }", 'dense = { ffn = 176, init = "start_moe" }')
    place.edit(grid, "moe   = { experts = 4,", 'moe   = { init = "start_moe", experts = 4,')
    place.edit(grid, 'params  = { task = "schema", data = "giving",', 'params  = { task = "schema", data = "giving", model = "start_dense",')
    run = place.run("preregctl", "lock", grid)
    expect(run.returncode == lab.INVALID and "init: its experts is 4, the run's 0" in run.stderr, f"a start of another shape: {run.stderr}")
    place.edit(grid, 'ffn = 176, init = "start_moe"', 'ffn = 176, init = "start_dense"')
    place.ctl("lock", grid)
    place.must(lab.OK, "preregd", "submit", grid, "--wait")
    read_by = [sorted(kept[2]) for kept in lab.results(place.program_folder()).values()]
    expect(read_by.count(["corpus", "start_dense"]) == 3 and read_by.count(["corpus", "start_moe"]) == 3
           and read_by.count(["giving", "start_dense"]) == 6, f"what was read: {read_by}")
    with open(os.path.join(data, "start_moe", "config.json"), "a", encoding="utf-8") as f:
        f.write("\n")
    place.ctl("check", grid, wanted=lab.LOCK)


IMPORTING = """
[program]
name     = "back"
schema   = 1
question = "Do files of the harness's that came from here come back as they were?"
[[factor]]
name   = "arch"
levels = ["dense", "moe"]
[[factor]]
name      = "seed"
levels    = [1, 2]
replicate = true
[stage.train]
command = ["prereg-train"]
[stage.mc]
after   = ["train"]
command = ["prereg-eval"]
params  = { task = "choices" }
[stage.mmlu]
after   = ["train"]
command = ["prereg-eval"]
[stage.gsm8k]
after   = ["train"]
command = ["prereg-eval"]
[measure]
mc   = { metric = "mc.acc_norm", items = 3, chance = 0.5, floor = 0.6 }
mmlu = { metric = "mmlu.acc:stem", items = 7, counted = false }
gsm  = { metric = "gsm8k.exact_match:strict", counted = false }
[contrast]
arch = { between = { arch = ["moe", "dense"] }, over = "cleared" }
[counter]
k = { contrast = "arch", clears = "every_cell", binds = true }
[[input]]
name   = "cleared"
levels = [["some", "counter.k >= 1"], ["none", "counter.k == 0"]]
[table]
inputs = ["cleared"]
rows   = [["some", "A"], ["none", "B"]]
[outcome]
A = { prior = 0.4, title = "Some cell is cleared" }
B = { prior = 0.5, title = "None is" }
"""


def test_export_and_import(place):
    """What export-harness writes, import reads: the same metrics under the same names, every answer judged again."""
    for i, subject in enumerate(("anatomy", "astronomy", "marketing")):
        rows = [f'"What is {subject}, {k}?",one,two,three,four,{"ABCD"[(i + k) % 4]}\n' for k in range(3 + i)]
        place.write(f"subjects/test/{subject}_test.csv", "".join(rows))
    data = {"subjects": place.path("subjects"),
            "items": place.write("items.jsonl", "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in ITEMS)),
            "sums": place.write("sums.jsonl", "".join(json.dumps({"question": f"{k}+1?", "answer": f"#### {k}"}) + "\n" for k in range(4)))}
    stages = {"mc": {"task": "choices", "data": "items"}, "mmlu": {"task": "mmlu", "data": "subjects", "shots": 0, "groups": ["anatomy", "astronomy", "marketing"]},
              "gsm8k": {"task": "gsm8k", "data": "sums", "shots": 0, "max_tokens": 8, "viability": {"items": 0}}}
    wanted = {}
    for arch, shape in (("dense", SMALL), ("moe", MOE)):
        model, _ = attempt(place, arch, shape)
        for stage, params in stages.items():
            if (arch, stage) == ("moe", "mc"):
                params = {**params, "items": {"count": 2, "seed": 1}}
            folder, _ = attempt(place, f"{arch}_{stage}", params, data, {"train": model}, worker="prereg-eval")
            place.must(0, "prereg-eval", "export-harness", folder, "-o", place.path("files", f"{arch}_1", stage))
            wanted[f"arch={arch},seed=1", stage] = result(folder)["metrics"]
    place.write("grid.toml", IMPORTING)
    answer = place.ctl_json("import", "grid.toml", "--pattern", "files/{arch}_{seed}/{stage}/prereg-*/results_*.json", "--samples",
                            "files/{arch}_{seed}/{stage}/prereg-*/samples_*.jsonl", "-o", "out", wanted=lab.INDETERMINATE)
    records = json.loads(read(place.path("out", "records.json")))["records"]
    for key, metrics in wanted.items():
        got = [r["metrics"] for r in records if (r["cell"], r["stage"]) == key][0]
        equal(got, {name: m for name, m in metrics.items() if m["value"] is not None}, f"metrics of {key}")
    checked = [f for f in answer["files"] if f["kind"] == "samples"]
    equal(len(checked), 2 * 5, "samples files")
    for receipt in checked:
        expect("not " not in receipt["checked"] and "summed" not in receipt["checked"], f"{receipt}")
    warnings = "\n".join(answer["warnings"])
    expect("limited run: mc was scored on 2 items only (limit 2)" in warnings, warnings)
    expect("no file results_*.json for arch=dense,seed=2" in warnings, warnings)


def test_stories(place):
    """stories260K goes on with its documented text, and its loss is what PyTorch has for the text (tests/oracle)."""
    folder = os.path.join(SHARED, "data/models/stories260K")
    if not os.path.isdir(folder):
        lab.skip(f"no {folder}")
    with open(os.path.join(folder, "stories260K.md"), encoding="utf-8") as f:
        text = f.read().split("-t 0.0\n", 1)[1].split("```", 1)[0]
    equal(place.must(0, "prereg-train", "generate", folder).stdout, text, "greedy text")
    start = text[:40]
    run = place.must(0, "prereg-train", "generate", folder, "--prompt", start, "--tokens", "20")
    expect(run.stdout.startswith(start) and text.startswith(run.stdout[:-1]), f"with a prompt: {run.stdout!r}")
    ids = place.must(0, "prereg-train", "generate", folder, "--tokens", "3", "--ids").stdout
    equal(ids, "403 407 261\n", "ids")
    loss = json.loads(place.must(0, "prereg-train", "loss", folder, "--text", place.write("story.txt", text.strip())).stdout)
    expect(abs(loss["loss"] - STORY_LOSS) < 1e-4, f"loss of the greedy text: {loss}")
    lone = os.path.join(folder, "stories260K.bin")
    place.must(USAGE, "prereg-train", "generate", lone)
    run = place.must(0, "prereg-train", "generate", lone, "--tokenizer", os.path.join(folder, "tok512.bin"))
    equal(run.stdout, text, "greedy text of the file alone")
    # As a start, with its tokenizer from the program's data: a run that learns nothing says the same.
    shape = {"layers": 5, "width": 64, "heads": 8, "kv_heads": 4, "ffn": 172, "vocab": 512, "context": 512, "tokenizer": "tok",
             "init": "stories", "lr": 0, "seed": 1, "batch_tokens": 512, "data": "text",
             "horizon": {"contract": "fixed", "tokens": 512}}
    tok = os.path.join(folder, "tok512.bin")
    still, _ = attempt(place, "still", shape, {"stories": folder, "tok": tok})
    equal(place.must(0, "prereg-train", "generate", still).stdout, text, "greedy text of a run that started from it")
    other = {**shape, "tokenizer": "bytes"}
    _, run = attempt(place, "bytes", other, {"stories": folder}, wanted=DATA)
    expect("another tokenizer" in run.stderr, run.stderr)
    place.must(USAGE, "prereg-train", "loss", folder)
    place.must(USAGE, "prereg-train", "generate", folder, "--tokens", "0")
    run = place.must(UNMEASURABLE, "prereg-train", "export", "--hf", place.path("hf"), folder)
    expect("--no-tokenizer" in run.stderr, run.stderr)
    place.must(0, "prereg-train", "export", "--no-tokenizer", "--hf", place.path("hf"), folder)
    run = place.must(0, "prereg-train", "generate", place.path("hf"), "--tokenizer", os.path.join(folder, "tok512.bin"))
    equal(run.stdout, text, "greedy text of the export")


STORY_LOSS = 0.488527  # nats per token, the end-of-text token included

lab.main(test_export, test_init, test_evaluation, test_program, test_export_and_import, test_stories)
