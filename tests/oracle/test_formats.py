#!/usr/bin/env python3
"""Every format of `preregctl export --format` read by its own project's library: of a program that ran (with curves, hostile names,
a dataset of the Hub) and of an imported one."""

import glob
import json
import os
import site
import sys

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
BUILD = sys.argv[1]
sys.argv[1] = os.path.join(BUILD, "bin")

from lib import lab  # noqa: E402
from lib.lab import equal, expect  # noqa: E402
from lib.formats_program import prepare  # noqa: E402

CELL = "arm=a,seed=1"


def check_hub(folder):
    import huggingface_hub
    import yaml
    n = 0
    for path in glob.glob(os.path.join(folder, "*", ".eval_results", "*.yaml")):
        with open(path, encoding="utf-8") as f:
            entries = huggingface_hub.parse_eval_result_entries(yaml.safe_load(f))
        equal((entries[0].dataset_id, entries[0].task_id, type(entries[0].value)), ("cais/mmlu", 'te"st', float), path)
        n += len(entries)
    equal(n, 4, "entries")


def check_every_eval(folder):
    import jsonschema
    schema = glob.glob(os.path.join(site.getsitepackages()[0], "every_eval_ever/schemas/eval.schema.json"))[0]
    with open(schema, encoding="utf-8") as f:
        validator = jsonschema.Draft7Validator(json.load(f))
    files = glob.glob(os.path.join(folder, "*.json"))
    for path in files:
        with open(path, encoding="utf-8") as f:
            errors = [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(json.load(f))]
        equal(errors, [], path)
    expect(files, "no file")


def check_croissant(folder):
    import mlcroissant
    dataset = mlcroissant.Dataset(jsonld=os.path.join(folder, "croissant.json"))
    equal(list(dataset.metadata.ctx.issues.errors), [], "errors")
    print("mlcroissant warns:", list(dataset.metadata.ctx.issues.warnings))


def check_crate(folder):
    import rocrate.rocrate
    crate = rocrate.rocrate.ROCrate(folder)
    files = {e.id: e for e in crate.data_entities}
    equal(sorted(files), sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder)
                                for name in names if name != "ro-crate-metadata.json"), "the files of the crate")
    result = crate.dereference("#verdict")["result"]
    expect(result.id.endswith("-receipt/verdict.json") and result.type == "File", f"{result}")
    equal(crate.root_dataset.type, "Dataset", "root")
    expect(crate.root_dataset["datePublished"] and crate.name and crate.description, "what RO-Crate 1.1 requires of the root")


def check_mlflow(folder, curves):
    import mlflow
    client = mlflow.MlflowClient(tracking_uri="file://" + os.path.join(folder, "mlruns"))
    experiment, = [e for e in client.search_experiments() if e.experiment_id != "0"]
    runs = client.search_runs([experiment.experiment_id])
    expect(len(runs) >= 4, "runs")
    if curves:
        run = next(r for r in runs if r.info.run_name == CELL)
        equal((run.data.params["train.seed"], run.data.metrics["score.acc"], run.info.status), ("1", 0.75, "FINISHED"), "a run")
        history = client.get_metric_history(run.info.run_id, "curves/train.loss")
        equal([(m.step, m.value) for m in history], [(10, 3.375), (20, 2.75), (30, 2.125)], "a curve")
        equal(run.data.tags["mlflow.runName"], CELL, "name")


def check_tensorboard(folder, curves):
    from tensorboard.backend.event_processing import event_accumulator
    for path in glob.glob(os.path.join(folder, "*", "events.*")):
        reader = event_accumulator.EventAccumulator(path)
        reader.Reload()
        tags = reader.Tags()["scalars"]
        expect(tags, path)
        if curves and os.path.basename(os.path.dirname(path)) == CELL:
            equal([(s.step, s.value) for s in reader.Scalars("train/loss")], [(10, 3.375), (20, 2.75), (30, 2.125)], "a curve")
            equal(reader.Scalars("final/score.acc")[0].value, 0.75, "a metric")


def check_all(place, program, names, ran):
    for name in names:
        folder = place.ctl_json("export", "--format", name, *program, "-o", place.path("out"))["folder"]
        {"hf-eval-results": check_hub, "every-eval-ever": check_every_eval, "croissant": check_croissant, "ro-crate": check_crate,
         "mlflow": lambda f: check_mlflow(f, ran), "tensorboard": lambda f: check_tensorboard(f, ran)}[name](folder)
        print(f"{name}: read by its own library")


NAMES = ("hf-eval-results", "every-eval-ever", "croissant", "ro-crate", "mlflow", "tensorboard")


def test_ran(place):
    prepare(place)
    os.unlink(place.path("hold"))
    place.wait_finished(60)
    check_all(place, (), NAMES, True)


def test_imported(place):
    paper = os.path.join(lab.TOP, "ops/programs/below_the_floor")
    place.ctl("replay", f"{paper}/grid.toml", f"{paper}/replay/records.json", "--out", place.path("imported"))
    check_all(place, (place.path("imported"),), ("every-eval-ever", "ro-crate", "mlflow", "tensorboard"), False)


lab.main(test_ran, test_imported)
