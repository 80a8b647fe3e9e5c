#!/usr/bin/env python3
"""The three papers, replayed from their published figures: verdicts, tables, and what the instruments say of them."""

import csv
import json
import math
import os
import subprocess
import sys

from lib import lab
from lib.lab import equal, expect

PROGRAMS = os.path.join(lab.TOP, "ops/programs")


def near(got, wanted, tolerance, what):
    expect(got is not None and abs(got - wanted) <= tolerance, f"{what}: {got}, not {wanted}")


def published(name):
    with open(os.path.join(PROGRAMS, name, "replay/published.json"), encoding="utf-8") as f:
        return json.load(f)


class Replay:
    """A paper's records through `replay --out`: the answer, and the files of the folder."""

    def __init__(self, place, name, grid, records="records.json"):
        self.folder = place.path("replayed")
        records = os.path.join(PROGRAMS, name, "replay", records)
        self.answer = place.ctl_json("replay", os.path.join(PROGRAMS, grid), records, "--out", self.folder)
        self.verdict = self.answer["verdict"]
        plain = place.ctl_json("replay", os.path.join(PROGRAMS, grid), records)["verdict"]
        for v in (plain, dict(self.verdict)):
            v["root"] = v["head"] = None
        self.verdict["root"] = self.verdict["head"] = None
        equal(self.verdict, plain, "the verdict in the folder")
        self.instruments = self.read("report/instruments.json") if os.path.exists(os.path.join(self.folder, "report/instruments.json")) else None

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as f:
            return json.load(f)

    def figure(self, contrast, measure):
        found = [k for k in self.verdict["contrasts"] if k["name"] == contrast][0]["measures"]
        return [m for m in found if m["measure"] == measure][0]

    def instrument(self, name):
        expect(self.instruments is not None and self.instruments["why"] is None, f"no instruments: {self.instruments}")
        return [i for i in self.instruments["instruments"] if i["name"] == name][0]


def labelled(replay, label):
    """The label stands in the verdict, in the folder's files, and in the first lines of the report."""
    equal(replay.verdict["records"], label, "label in the verdict")
    equal(replay.read("records.json")["label"], label, "label of the records")
    equal(replay.read("imported.json")["label"], label, "label in imported.json")
    with open(os.path.join(replay.folder, "report/report.md"), encoding="utf-8") as f:
        md = f.read()
    expect(md.startswith("# IMPORTED RECORDS") and label in md[:3000], f"the report does not begin with it: {md[:600]}")


def derived(place, name):
    """derive.py writes the committed records, byte for byte."""
    written = ["records.json"] + (["miniseries.json"] if name == "holding_fixed" else [])
    folder = os.path.join(PROGRAMS, name, "replay")
    for file in ("derive.py", "published.json"):
        with open(os.path.join(folder, file), encoding="utf-8") as f:
            place.write(f"derived/{file}", f.read())
    subprocess.run([sys.executable, place.path("derived/derive.py")], check=True)
    for file in written:
        with open(os.path.join(folder, file), "rb") as a, open(place.path(f"derived/{file}"), "rb") as b:
            expect(a.read() == b.read(), f"{name}: derive.py writes another {file}")


# ── Below the Measurement Floor ──────────────────────────────────────────────────────────────────────

def floor(place):
    return Replay(place, "below_the_floor", "below_the_floor/grid.toml")


def test_floor_verdict(place):
    p, r = published("below_the_floor"), floor(place)
    v, results = r.verdict, p["results"]
    labelled(r, "reconstructed")
    derived(place, "below_the_floor")
    equal((v["outcome"], v["rows_fired"], v["counters"]), (results["outcome"], results["rows_fired"], {"k": [0, 0], "k_mean": [0, 0]}),
          "outcome, rows, both forms of K")
    equal(v["coverage"]["records"], {"planned": results["records"], "done": results["evaluable"], "blocked": results["partial_blocked"],
                                     "never_run": 0}, "records")
    equal((v["prior"], round(v["surprisal_bits"], 3)), (p["priors"]["O4"], 2.556), "prior and bits")
    margins = {m: sorted(-g["z"] for g in v["gates"] if g["measure"] == m and g["z"] is not None) for m in ("mmlu", "hellaswag", "winogrande")}
    equal(round(margins["mmlu"][0], 1), results["floor_margin_sigma"]["mmlu"], "margin of the best cell on MMLU")
    expect(3.5 <= margins["hellaswag"][0] and margins["hellaswag"][-1] <= 4.5, f"HellaSwag is about 4 sigma under: {margins}")
    expect(1.45 <= margins["winogrande"][0] and margins["winogrande"][-1] <= 3.05, f"WinoGrande is 1.5 to 3 sigma under: {margins}")
    equal(v["pairs"]["n"], 18, "differences")
    largest = max(v["pairs"]["list"], key=lambda d: abs(d["difference"]))
    near(abs(largest["difference"]), results["max_abs_difference"], 5e-7, "largest difference")
    equal((largest["measure"], largest["a"], largest["b"]), ("winogrande", "arch=dense,lr=0.001", "arch=dense,lr=0.002"), "where it is")
    equal(len([n for n in v["notes"] if "no item count" in n]), 3, "notes of records without n")


def test_floor_bayes(place):
    p, r = published("below_the_floor")["results"], floor(place)
    for measure, factors in p["bf10"].items():
        f = r.figure("arch", measure)
        for tau, factor in zip(p["bayes_priors_pp"], factors):
            d, se = 100 * f["mean"], 100 * f["se"]
            bf = math.exp(-0.5 * math.log1p((tau / se) ** 2) + 0.5 * (d / se) ** 2 * tau ** 2 / (se ** 2 + tau ** 2))
            near(bf, factor, 5e-5, f"BF10 of {measure} at {tau}")
    bayes = {m["measure"]: m for m in r.instrument("bayes")["measures"]}
    for measure, factors in p["bf10"].items():
        equal([round(c["bf10"], 4) for c in bayes[measure]["cells"]], factors, f"the instrument's factors of {measure}")
    equal([(bayes[m]["reading"], bayes[m]["robust"]) for m in ("mmlu", "hellaswag")], [("for the null", True)] * 2, "robust for the null")
    equal(bayes["winogrande"]["robust"], False, "WinoGrande depends on the prior")
    equal([c["reading"] for c in bayes["winogrande"]["cells"]], ["neither", "neither", "for the null"], "WinoGrande leans null under the widest prior alone")


def test_floor_fits(place):
    p, r = published("below_the_floor")["results"], floor(place)
    pinned = {f"fact.train.router_{x}" for x in ("load", "kills", "occupancy", "anneal")}
    for fit in r.instrument("mixed")["fits"]:
        equal(fit["singular"], True, f"the fit of {fit['response']}")
        named = {reason["term"] for reason in fit["reasons"] if reason["kind"] == "no_variance"}
        expect(pinned <= named, f"{fit['response']}: columns named are {sorted(named)}")
        equal(len(fit["dropped"]), 6, "dense rows, which have no router")
    extra = r.instrument("supplementary")
    equal(extra["discussion_only"], True, "declared as discussion only")
    for fit in extra["fits"]:
        near(fit["r2_marginal"], p["entropy_fit_marginal_r2"], 5e-5, f"marginal R2 of {fit['response']}")
    near([f for f in extra["fits"] if f["response"] == "hellaswag"][0]["r2_conditional"], 0.06, 0.005, "what seeds add")


def test_floor_router(place):
    p, r = published("below_the_floor")["results"], floor(place)
    router = r.instrument("router")
    equal((router["fields"]["all_pinned"], router["fields"]["n_pinned"]), (True, 4), "the four figures without variance")
    of = [c for c in router["conditions"] if c["condition"].startswith("arch=moe")]
    equal(len(of), 2, "conditions with a router")
    for key, name in (("entropy_share", "router_entropy_share"), ("effective_experts", "effective_experts")):
        low, high = p[name]
        expect(all(low <= c[key] <= high for c in of), f"{name} of {of}")
    with open(os.path.join(r.folder, "report/report.md"), encoding="utf-8") as f:
        expect("Effective experts" in f.read(), "the report has no effective experts")


def test_floor_connector(place):
    p, r = published("below_the_floor")["results"], floor(place)
    connector = r.instrument("connector")
    equal(connector["case"], "CASE-A", "the connector's case")
    near(connector["loss"]["gap"], p["loss_gap_nats"], 1e-9, "gap of the losses")
    near(connector["loss"]["inflation"], 0.474, 5e-4, "perplexity inflation")
    equal(connector["loss"]["worse"], "moe", "the arm with the higher loss")
    equal(connector["trigger"]["fires"], False, "the perplexity trigger")
    expect(connector["limit"], "the identification limit is not given")
    equal([(x["source"], x["gap"], x["why"]) for x in connector["sources"]],
          [(source, None, "the record is missing") for source in ("stories", "python", "math")], "gaps by source, which the paper has not")
    equal(connector["sources_agree"], None, "whether sources agree")
    forecasts = {f["name"]: f for f in r.instruments["forecasts"]}
    equal({n: f["outcome"] for n, f in forecasts.items()}, {"singular": True, "dense_ahead": True}, "forecasts")
    near(forecasts["singular"]["brier"], 0.01, 1e-12, "Brier of the first")
    near(forecasts["dense_ahead"]["brier"], 0.0225, 1e-12, "Brier of the second")
    near(r.instruments["priors"]["bits"], 2.556, 5e-4, "bits of O4")
    tails = {m["measure"]: m["whole"]["p_lower"] for m in r.instrument("dispersion")["measures"]}
    expect(tails["mmlu"] < 0.001 and tails["hellaswag"] < 0.001, f"under-dispersion: {tails}")


def test_floor_anchors(place):
    """Scores of the earlier, larger models beside the means of each condition."""
    p, r = published("below_the_floor")["results"], floor(place)
    anchors = r.instrument("anchors")
    equal({m["model"]: {x["measure"]: x["value"] for x in m["measures"]} for m in anchors["models"]},
          {"dense, 50M": p["anchors"]["dense-50m"], "moe, 62.99M total": p["anchors"]["moe-63m"]}, "anchors")
    expect("another version of the apparatus" in anchors["source"], f"the source does not say it: {anchors['source']}")
    for model in anchors["models"]:
        of = {m["measure"]: m for m in model["measures"]}
        equal({m: x["clears_floor"] for m, x in of.items()}, {"mmlu": True, "hellaswag": False, "gsm8k": True, "winogrande": False}, "clearing")
        below = [-c["difference"] for c in of["mmlu"]["conditions"]]
        expect(len(below) == 4 and all(0.04 <= d <= 0.0601 for d in below), f"MMLU is 4 to 6 points under {model['model']}: {below}")
        equal([c["difference"] for c in of["gsm8k"]["conditions"]], [None] * 4, "GSM8K was not measured")


# ── the two others ───────────────────────────────────────────────────────────────────────────────────

def test_active_vs_total(place):
    p, r = published("active_vs_total")["results"], Replay(place, "active_vs_total", "active_vs_total/replay/grid.toml")
    labelled(r, "reconstructed: best losses that agree with the published means and errors")
    derived(place, "active_vs_total")
    equal((r.verdict["outcome"], r.verdict["rows_fired"]), ("split", [2]), "outcome")
    for contrast, sign in (("active", 1), ("total", -1)):
        f = r.figure(contrast, "best")
        equal([round(sign * f["mean"], 4), round(f["se"], 4), f["n"]], p[f"gap_{contrast}"] + [3], f"gap at equal {contrast} parameters")
        expect(sign * f["ci_low"] > 0 and sign * f["ci_high"] > 0, f"the interval of {contrast} holds 0")
        course = r.instrument(f"course_{contrast}")
        equal([m["gap"] for m in course["marks"][:-1]], [None] * 4, f"{contrast}: no loss on the way was published")
        last = course["marks"][-1]
        equal([last[k] for k in ("measure", "at", "gap", "se", "ci_low", "ci_high")],
              ["best", 1] + [f[k] for k in ("mean", "se", "ci_low", "ci_high")], f"{contrast}: the last mark")
        equal(last["favours"], {"active": "moe", "total": "dense_total"}[contrast], f"{contrast}: whom it favours")
        equal([course["course"], course["slope"]["slope"], course["crossing"]["at"], course["fields"]["widens"], course["fields"]["narrows"]],
              [None] * 5, f"{contrast}: a course of one mark")
    expect(all(list(x["metrics"]) == ["best_val_loss"] and not x.get("facts") for x in r.read("records.json")["records"]),
           "the records hold best losses and nothing else")
    losses = {}
    for record in r.read("records.json")["records"]:
        losses.setdefault(record["cell"].split(",")[0][4:], []).append(record["metrics"]["best_val_loss"])
    means = {x["condition"][4:]: x for x in r.instruments["means"] if x["measure"] == "best"}
    for arm, (mean, se) in p["val_loss"].items():
        m = sum(losses[arm]) / 3
        equal([round(m, 4), round(math.sqrt(sum((x - m) ** 2 for x in losses[arm]) / 2 / 3), 4)], [mean, se], f"loss of {arm}")
        equal([round(means[arm]["mean"], 4), round(means[arm]["se"], 4), means[arm]["n"]], [mean, se, 3], f"the table's mean of {arm}")


def test_miniseries(place):
    """The slice that failed usefully: d12 ahead on both, and three dials turned at once."""
    p, r = published("holding_fixed")["results"]["miniseries"], Replay(place, "holding_fixed", "holding_fixed/replay/miniseries.toml", "miniseries.json")
    labelled(r, "reconstructed: published figures")
    equal((r.verdict["outcome"], r.verdict["rows_fired"]), ("both", [1]), "outcome")
    for measure in ("bpb", "core"):
        near(r.figure("deeper", measure)["mean"], p["d12"][measure] - p["d10"][measure], 1e-12, measure)
    facts = {x["cell"][6:]: x["facts"] for x in r.read("records.json")["records"] if x["stage"] == "train"}
    equal(facts, {m: {"tokens": x["tokens_at_20pct"], "experts": x["experts"]} for m, x in p.items()}, "tokens and experts")
    with open(os.path.join(r.folder, "report/report.md"), encoding="utf-8") as f:
        text = f.read()
    for words in ("| model=d10 | 1.4000 | 0.001 |", "| model=d12 | 1.2100 | 0.0650 |", "Depth: 10 and 12 layers.", "Routed experts: 64 and 256."):
        expect(words in text, f"the report has no {words!r}")


def read_csv(path):
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def test_tables(place):
    """`report --csv`: the headline table and every record, as a spreadsheet reads them; levels may hold commas and quotes."""
    p, r = published("active_vs_total")["results"], Replay(place, "active_vs_total", "active_vs_total/replay/grid.toml")
    before = sorted(os.listdir(os.path.join(r.folder, "report")))
    answer = place.ctl_json("report", r.folder, "--csv", place.path("tables"))
    means = {(m["measure"], m["arm"]): m for m in read_csv(answer["means"])}
    for arm, (mean, se) in p["val_loss"].items():
        row = means["best", arm]
        equal([round(float(row["mean"]), 4), round(float(row["se"]), 4), row["n"], row["why"]], [mean, se, "3", ""], f"means.csv, {arm}")
        expect(float(row["ci_low"]) < mean < float(row["ci_high"]), f"interval of {arm}: {row}")
        equal([means["at_20", arm][k] for k in ("mean", "se", "n", "why")], ["", "", "0", "the record is missing"], f"{arm} on the way")
    records = read_csv(answer["records"])
    equal(len(records), 9 * 5, "rows of records.csv")
    wanted = {(x["cell"], x["metrics"]["best_val_loss"]) for x in r.read("records.json")["records"]}
    equal({(x["cell"], float(x["value"])) for x in records if x["measure"] == "best"}, wanted, "values of records.csv")
    equal({(x["seed"], x["metric"]) for x in records if x["measure"] == "best"}, {(s, "train.best_val_loss") for s in "123"}, "factors and metric")
    equal({(x["value"], x["why"] != "") for x in records if x["measure"] == "at_40"}, {("", True)}, "records that are missing")
    equal(place.ctl("report", r.folder, "--csv", place.path("tables")).stdout, f"{answer['means']}\n{answer['records']}\n", "the paths")
    equal(sorted(os.listdir(os.path.join(r.folder, "report"))), before, "files of report/")
    quoted(place)


def quoted(place):
    levels = ["a,b", 'say "x"']
    with open(os.path.join(PROGRAMS, "active_vs_total/replay/grid.toml"), encoding="utf-8") as f:
        text = f.read()
    grid = text[:text.index("[stage.train.when.arm]")].replace('["dense_active", "moe", "dense_total"]', json.dumps(levels)) + f"""
[measure]
best = {{ metric = "train.best", better = "lower" }}
[contrast]
c = {{ between = {{ arm = {json.dumps(levels)} }} }}
[[input]]
name = "i"
levels = [["y", "contrast.c[best].mean > 0"], ["n", "otherwise"]]
[table]
inputs = ["i"]
rows = [["y", "Y"], ["n", "N"]]
[outcome]
Y = {{ prior = 0.5, title = "y" }}
N = {{ prior = 0.4, title = "n" }}
"""
    records = [{"cell": f"arm={level},seed={seed}", "stage": "train", "metrics": {"best": seed + 0.1}} for level in levels for seed in (1, 2, 3)]
    place.write("quoted/grid.toml", grid)
    place.write("quoted/records.json", json.dumps({"schema": 1, "program": "active_vs_total_published", "records": records}))
    place.ctl("replay", place.path("quoted/grid.toml"), place.path("quoted/records.json"), "--out", place.path("of_quoted"))
    answer = place.ctl_json("report", place.path("of_quoted"), "--csv", place.path("quoted_tables"))
    equal([m["arm"] for m in read_csv(answer["means"])], levels, "levels in means.csv")
    equal([(x["arm"], x["seed"], x["value"]) for x in read_csv(answer["records"])],
          [(level, str(seed), repr(seed + 0.1)) for level in levels for seed in (1, 2, 3)], "levels in records.csv")


def test_holding_fixed(place):
    p, r = published("holding_fixed")["results"], Replay(place, "holding_fixed", "holding_fixed/replay/grid.toml")
    labelled(r, "reconstructed: published figures, dense under total20 is its one run")
    derived(place, "holding_fixed")
    equal((r.verdict["outcome"], r.verdict["rows_fired"]), ("by_contract", [3]), "outcome: the ranking depends on the contract")
    bf16, fp8, total = (p[t] for t in ("active_contract_bf16", "active_contract_fp8", "total_contract_20pct_bf16"))
    for contrast, a, b in (("at_active", bf16["moe256"], bf16["dense"]), ("at_active_fp8", fp8["moe256"], fp8["dense"]),
                           ("at_total", total["moe256"], bf16["dense"]), ("pair_active", bf16["moe256"], bf16["moe64"]),
                           ("pair_total", total["moe256"], total["moe64"])):
        f = r.figure(contrast, "core")
        near(f["mean"], a["core"] - b["core"], 1e-12, f"CORE, {contrast}")
        equal(f["se"], None, f"{contrast}: single runs have no standard error")
    near(r.figure("at_active", "target")["mean"], 4864 - 8320, 0, "steps to the target, active contract")
    near(r.figure("pair_total", "loss")["mean"], 2.8554 - 3.2625, 1e-12, "losses under the total contract")
    equal(r.figure("at_total", "target")["mean"], None, "what was not published")
    ranks = {(x["measure"], x["setting"]): x for x in r.instruments["ranks"]}
    equal({s.split("=")[1]: [(o["level"], o["rank"]) for o in x["order"]] for (m, s), x in ranks.items() if m == "core"},
          {"active": [("dense", 1), ("moe256", 2), ("moe64", 3)], "active_fp8": [("moe256", 1), ("moe64", 2), ("dense", 3)],
           "total20": [("moe256", 1), ("dense", 2), ("moe64", 3)]}, "rankings by contract")
    equal([(o["level"], o["mean"]) for o in ranks["target", "contract=active"]["order"]],
          [("moe256", 4864), ("moe64", 5760), ("dense", 8320)], "steps to the target: fewer is better")
    equal((ranks["target", "contract=total20"]["order"], ranks["target", "contract=total20"]["why"]), ([], "not published"),
          "a ranking that was not published")
    with open(os.path.join(r.folder, "report/report.md"), encoding="utf-8") as f:
        expect("moe256 &gt; dense &gt; moe64" in f.read(), "the report's table of ranks")


lab.main(test_floor_verdict, test_floor_bayes, test_floor_fits, test_floor_router, test_floor_connector, test_floor_anchors, test_active_vs_total,
         test_tables, test_miniseries, test_holding_fixed)
