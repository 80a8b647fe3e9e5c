#!/usr/bin/env python3
"""Writes the published figures of "What Are We Holding Fixed?" as records of grid.toml (records.json) and of miniseries.toml
(miniseries.json), and nothing besides them.

Every value is in published.json. One record is there twice: dense has as many active parameters as parameters, so its run is the same
under both contracts (README.md). Standard library only.
"""
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENS_PER_STEP = 524288
UNPUBLISHED = {"value": None, "why": "not published"}


def facts(results, model, steps):
    p = results["parameters"][model]
    return {"params_total": p["total"], "params_active": p["active"], "steps": steps, "tokens": steps * TOKENS_PER_STEP,
            "ffn_active": results["active_ffn_width"]}


def rows(results):
    """(model, contract, steps, target step or None, loss or None, CORE)"""
    steps = results["active_contract"]["steps"]
    for contract, table in (("active", "active_contract_bf16"), ("active_fp8", "active_contract_fp8")):
        for model, row in results[table].items():
            yield model, contract, steps, row["stop"], None, row["core"]
    dense = results["active_contract_bf16"]["dense"]
    yield "dense", "total20", steps, dense["stop"], None, dense["core"]
    for model, row in results["total_contract_20pct_bf16"].items():
        yield model, "total20", row["steps"], None, row["valid_loss"], row["core"]


def contracts(results):
    records = []
    for model, contract, steps, stop, loss, core in rows(results):
        cell = f"model={model},contract={contract}"
        train = {"target_step": UNPUBLISHED if stop is None else stop, "val_loss": UNPUBLISHED if loss is None else loss}
        records.append({"cell": cell, "stage": "train", "metrics": train, "facts": facts(results, model, steps)})
        records.append({"cell": cell, "stage": "core", "metrics": {"core": core}})
    return records


def miniseries(results):
    records = []
    for model, row in results["miniseries"].items():
        records.append({"cell": f"model={model}", "stage": "train", "metrics": {"bpb": row["bpb"]},
                        "facts": {"tokens": int(row["tokens_at_20pct"]), "experts": row["experts"]}})
        records.append({"cell": f"model={model}", "stage": "core", "metrics": {"core": row["core"]}})
    return records


def write(name, program, label, records):
    head = {"schema": 1, "program": program, "label": label}
    lines = ",\n".join("  " + json.dumps(r) for r in records)
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as out:
        out.write(json.dumps(head)[:-1] + ', "records": [\n' + lines + "\n]}\n")


def main():
    with open(os.path.join(HERE, "published.json"), encoding="utf-8") as f:
        results = json.load(f)["results"]
    write("records.json", "holding_fixed_published", "reconstructed: published figures, dense under total20 is its one run", contracts(results))
    write("miniseries.json", "holding_fixed_miniseries", "reconstructed: published figures", miniseries(results))


main()
