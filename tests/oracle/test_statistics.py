#!/usr/bin/env python3
"""The instruments' mathematics (truthtable/instruments/) against lme4, mpmath, scipy and statsmodels.

    test_statistics.py BUILD_FOLDER [--seed N]  data made up from a seed
    test_statistics.py BUILD_FOLDER --golden    writes tests/golden/mixed_model.json and statistics.json

Mixed models: lme4 fits what tests/oracle/mixed_model.R makes up, and the same criterion is minimised again in 40 digits, which
tells rounding in lme4 from rounding here. Without R or lme4 that part is skipped, and says so.
"""

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile

import mpmath
import numpy
import scipy.special
import scipy.stats
import statsmodels.api
import statsmodels.stats.power

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "golden")
GOLDEN_SEED = 20
mpmath.mp.dps = 40

# The greatest relative difference that is let pass, of lme4's optimiser and of the digits that doubles have.
LME4 = {"theta": 2e-5, "var_b": 4e-5, "var_e": 2e-5, "beta": 1e-5, "se": 1e-5, "reml_loglik": 1e-8, "r2_marginal": 2e-5,
        "r2_conditional": 2e-5}
DIGITS = {"theta": 1e-9, "var_b": 1e-9, "var_e": 1e-9, "beta": 1e-9, "se": 1e-9, "reml_loglik": 1e-12,
          "r2_marginal": 1e-9, "r2_conditional": 1e-9}
# lme4 solves normal equations: of columns far from 0 or near one another it keeps half the digits, ours keep theirs (the second
# comparison shows it).
HARD = {"offset": 30, "nearly_collinear": 30}
SMALL = {"r2_marginal": 1e-6}  # of a fixed part without variance nothing but rounding is left


def ask(build, requests):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(requests, f)
        f.flush()
        out = subprocess.run([os.path.join(build, "tests", "ask_instruments"), f.name], stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout)


def apart(got, want, small=0.0):
    """Relative difference; of two nulls none, of one infinite."""
    if got is None or want is None:
        return 0.0 if got is want else math.inf
    small = max(small, 2.0 ** -1022)  # base/math has no subnormal numbers
    if abs(got) <= small and abs(want) <= small:
        return 0.0
    return abs(got - want) / abs(want) if want != 0 else abs(got)


class Tally:
    """The worst difference of every quantity, and where it was."""

    def __init__(self, title):
        self.title, self.worst, self.failed = title, {}, []

    def add(self, name, quantity, got, want, allowed, small=0.0):
        if isinstance(want, list):
            pairs = list(zip(got, want))
            off = max((apart(g, w, small) for g, w in pairs), default=0.0)
        else:
            off = apart(got, want, small)
        n, most, where = self.worst.get(quantity, (0, -1.0, ""))
        self.worst[quantity] = (n + 1, off, name) if off > most else (n + 1, most, where)
        if not off <= allowed:
            self.failed.append(f"{self.title}: {name}: {quantity} is {got}, not {want} ({off:.1e})")

    def same(self, name, what, got, want):
        if got != want:
            self.failed.append(f"{self.title}: {name}: {what} is {got}, not {want}")

    def report(self):
        print(self.title)
        for quantity, (n, off, name) in self.worst.items():
            print(f"  {quantity:<16} n {n:<5} worst {off:.1e}  ({name})")
        for line in self.failed:
            print("FAILED", line)
        return not self.failed


# ── mixed models ──


def lme4_cases(seed):
    if shutil.which("Rscript") is None or subprocess.run(
            ["Rscript", "-e", "for (p in c('lme4', 'jsonlite')) if (!requireNamespace(p, quietly = TRUE)) quit(status = 1)"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("skipped: mixed models (no Rscript with lme4 and jsonlite; ops/setup oracle installs them)")
        return None
    out = subprocess.run(["Rscript", os.path.join(HERE, "mixed_model.R"), str(seed)], stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout)


class Exact:
    """The profiled criterion of one case in 40 digits."""

    def __init__(self, case):
        keep = [k for k, kept in enumerate(case["kept"]) if kept]
        self.x = [[mpmath.mpf(row[k]) for k in keep] for row in case["x"]]
        self.y = [mpmath.mpf(v) for v in case["y"]]
        self.n, self.p = len(self.y), len(keep)
        self.groups = {}
        for i, g in enumerate(case["group"]):
            self.groups.setdefault(g, []).append(i)
        self.rows = [r + [v] for r, v in zip(self.x, self.y)]
        width = self.p + 1
        self.whole = mpmath.matrix(width, width)
        for r in self.rows:
            for i in range(width):
                for j in range(width):
                    self.whole[i, j] += r[i] * r[j]
        self.sums = [(len(m), [sum(self.rows[i][k] for i in m) for k in range(width)]) for m in self.groups.values()]

    def solve(self, gamma):
        """A = X'V^-1X, beta, RSS of [X y]' V^-1 [X y] = whole - sum of gamma / (1 + n gamma) s s'."""
        c = self.whole.copy()
        for n, s in self.sums:
            w = gamma / (1 + n * gamma)
            for i in range(self.p + 1):
                for j in range(self.p + 1):
                    c[i, j] -= w * s[i] * s[j]
        a, b = c[: self.p, : self.p], c[: self.p, self.p]
        beta = mpmath.lu_solve(a, b)
        return a, beta, c[self.p, self.p] - sum(beta[k] * b[k] for k in range(self.p))

    def criterion(self, gamma):
        a, _, rss = self.solve(gamma)
        return ((self.n - self.p) * mpmath.log(rss) + sum(mpmath.log(1 + n * gamma) for n, _ in self.sums)
                + mpmath.log(mpmath.det(a)))

    def fit(self, theta):
        """At the minimum nearest theta; theta 0 stays there."""
        gamma = mpmath.mpf(theta) ** 2
        if gamma > 0:
            slope = lambda t: mpmath.diff(lambda u: self.criterion(mpmath.exp(u)), t, h=mpmath.mpf(10) ** -12)
            t = mpmath.log(gamma)
            gamma = mpmath.exp(mpmath.findroot(slope, (t, t + mpmath.mpf(10) ** -6), solver="secant", tol=1e-26))
        a, beta, rss = self.solve(gamma)
        df = self.n - self.p
        var_e = rss / df
        inverse = a ** -1
        fixed = [sum(r[k] * beta[k] for k in range(self.p)) for r in self.x]
        mean = sum(fixed) / self.n
        var_f = sum((v - mean) ** 2 for v in fixed) / (self.n - 1)
        loglik = -(df * (1 + mpmath.log(2 * mpmath.pi * var_e)) + sum(mpmath.log(1 + n * gamma) for n, _ in self.sums)
                   + mpmath.log(mpmath.det(a))) / 2
        whole = var_f + gamma * var_e + var_e
        return {"theta": mpmath.sqrt(gamma), "var_b": gamma * var_e, "var_e": var_e, "reml_loglik": loglik,
                "r2_marginal": var_f / whole, "r2_conditional": (var_f + gamma * var_e) / whole,
                "beta": list(beta), "se": [mpmath.sqrt(var_e * inverse[k, k]) for k in range(self.p)]}


def look_mixed(build, document):
    lme4, digits = Tally(f"mixed models, {len(document['cases'])} fits, against lme4"), Tally("the same, against 40 digits")
    cases = document["cases"]
    for case, got in zip(cases, ask(build, [dict(c, op="mixed") for c in cases])):
        name = case["id"]
        lme4.same(name, "why", got["why"], None)
        lme4.same(name, "columns kept", got["kept"], case["kept"])
        lme4.same(name, "singular", got["singular"], case["singular"])
        if lme4.failed:
            continue
        exact = Exact(case).fit(got["theta"])
        kept = [k for k, kept in enumerate(case["kept"]) if kept]
        for key in LME4:
            lme4.add(name, key, got[key], case[key], LME4[key] * HARD.get(name, 1),
                     1e-6 if key == "theta" else 1e-9 * case["var_e"] if key == "var_b" else SMALL.get(key, 0))
            want = [float(v) for v in exact[key]] if key in ("beta", "se") else float(exact[key])
            mine = [got[key][k] for k in kept] if key in ("beta", "se") else got[key]
            digits.add(name, key, mine, want, DIGITS[key], SMALL.get(key, 0))
    return lme4.report() & digits.report()


# ── everything else: (name, request, what a reference answers, allowed) ──


def chi_square(rng):
    points = [(x, df) for df in (1, 2, 3, 5, 11, 35, 100, 999, 20000) for x in (1e-6, 1e-3, 0.1, 0.5, 0.9, 1, 1.1, 1.5, 3)]
    points += [(rng.uniform(0, 6), rng.randrange(1, 3000)) for _ in range(40)]
    for share, df in points:
        x = float(share * df)
        a, z = mpmath.mpf(df) / 2, mpmath.mpf(x) / 2
        p, q = mpmath.gammainc(a, 0, z, regularized=True), mpmath.gammainc(a, z, mpmath.inf, regularized=True)
        tiny = mpmath.mpf(10) ** -300
        want = {"p": float(p) if p > tiny else None, "q": float(q) if q > tiny else None,
                "ln_p": float(mpmath.log(p) if p < 0.5 else mpmath.log1p(-q)),
                "ln_q": float(mpmath.log(q) if q < 0.5 else mpmath.log1p(-p))}
        yield f"chi-square {x:g} on {df}", {"op": "chi_square", "x": x, "df": df}, {k: v for k, v in want.items()
                                                                                   if v is not None}, 1e-10


def student(rng):
    for df in [1, 2, 3, 4, 5, 11, 30, 99, 500, 1999, 2000, 2001, 2500, 14041, 10**6, 10**9] + [rng.randrange(1, 50000)
                                                                                          for _ in range(10)]:
        for p in (0.6, 0.9, 0.975, 0.9995):
            t = float(scipy.stats.t.ppf(p, df))
            yield f"t of {p} on {df}", {"op": "student", "p": p, "df": df}, {"t": t}, 1e-11


def normal(rng):
    for p in [1e-300, 1e-50, 1e-10, 0.001, 0.025, 0.2, 0.4999, 0.6, 0.8, 0.975, 0.9999] + [rng.random() for _ in range(20)]:
        yield f"z of {p:g}", {"op": "normal", "p": p}, {"z": float(scipy.special.ndtri(p))}, 1e-12


def items(rng):
    for n, k in ((2, 2), (5, 2), (20, 4), (198, 30), (1267, 57), (40, 40)) * 2:
        scale, offset = 10 ** rng.uniform(-6, 6), rng.choice([0, 0, 1e3])
        whole = rng.random() < 0.5
        d = [float(rng.choice([-1, 0, 0, 1])) if whole else scale * (rng.gauss(0, 1) + offset) for _ in range(n)]
        d[0], d[-1] = d[0] + 1, d[-1] - 2  # never all the same
        group = [i % k if i < k else rng.randrange(k) for i in range(n)]
        t = scipy.stats.ttest_1samp(d, 0)
        low, high = t.confidence_interval(0.95)
        yield f"paired, {n} items", {"op": "paired", "diff": d}, {
            "mean": float(numpy.mean(d)), "se": float(scipy.stats.sem(d)), "low": float(low), "high": float(high),
            "df": n - 1}, 1e-9
        fit = statsmodels.api.OLS(d, numpy.ones(n)).fit(cov_type="cluster", cov_kwds={"groups": group}, use_t=True)
        low, high = fit.conf_int()[0]
        yield f"clustered, {n} items in {k}", {"op": "clustered", "diff": d, "cluster": group}, {
            "mean": float(fit.params[0]), "se": float(fit.bse[0]), "low": float(low), "high": float(high), "df": k - 1,
            "clusters": k}, 1e-9


def dispersion(rng):
    for cells, n in ((12, 14042), (12, 1267), (2, 50), (30, 198), (5, 10042), (12, 100)):
        p = rng.uniform(0.2, 0.8)
        equal = rng.random() < 0.5
        sizes = [n if equal else rng.randrange(n // 2, n) for _ in range(cells)]
        right = [sum(rng.random() < p for _ in range(min(s, 500))) * (s // min(s, 500)) for s in sizes]
        table = numpy.array([right, [s - r for s, r in zip(sizes, right)]])
        found = scipy.stats.chi2_contingency(table, correction=False)
        yield f"dispersion of {cells} cells", {"op": "dispersion", "score": [r / s for r, s in zip(right, sizes)],
                                               "items": sizes}, {
            "chi2": float(found.statistic), "df": cells - 1, "p_upper": float(found.pvalue),
            "p_lower": float(scipy.stats.chi2.cdf(found.statistic, cells - 1))}, 1e-8


def bayes(rng):
    points = [(0.2503, 0.8716, t) for t in (1, 2, 3.4)] + [(0.0, 0.01, 3.4), (5.0, 0.01, 1.0), (1e-9, 1e-3, 1e-12)]
    points += [(rng.gauss(0, 1), 10 ** rng.uniform(-3, 1), 10 ** rng.uniform(-3, 1)) for _ in range(20)]
    for d, se, tau in points:
        d_, se_, tau_ = (mpmath.mpf(v) for v in (d, se, tau))
        ratio = mpmath.log(mpmath.npdf(d_, 0, mpmath.hypot(se_, tau_))) - mpmath.log(mpmath.npdf(d_, 0, se_))
        yield f"bayes {d:g} {se:g} {tau:g}", {"op": "bayes", "d": d, "se": se, "tau": tau}, {"ln_bf10": float(ratio)}, 1e-9


def power(rng):
    for i in range(12):
        d = {"alpha": rng.choice([0.01, 0.05, 0.1]), "power": rng.choice([0.5, 0.8, 0.95]), "omega2": rng.uniform(0, 0.3),
             "var_a": rng.uniform(0.01, 0.25), "k_a": rng.choice([1, 3, 10]), "var_b": rng.uniform(0.01, 0.25),
             "k_b": rng.choice([1, 5]), "delta": rng.uniform(0.005, 0.1), "n": rng.randrange(50, 20000)}
        sd = math.sqrt(d["omega2"] + d["var_a"] / d["k_a"] + d["var_b"] / d["k_b"])
        tools = statsmodels.stats.power
        n = float(tools.normal_sample_size_one_tail(d["delta"], d["power"], d["alpha"] / 2, std_null=sd))
        delta = math.sqrt(float(tools.normal_sample_size_one_tail(1, d["power"], d["alpha"] / 2, std_null=sd)) / d["n"])
        yield f"power {i}", dict(d, op="power"), {"items": n, "difference": delta}, 1e-9


def brier(rng):
    for k in (1, 2, 4, 7):
        for hit in (0, k - 1, k):
            v = [rng.random() for _ in range(k + 1)]
            priors = [x / sum(v) for x in v[:-1]]
            all_of = numpy.array(priors + [1 - sum(priors)])
            want = {"brier": float(((all_of - numpy.eye(k + 1)[hit]) ** 2).sum())}
            if hit < k:
                want["bits"] = float(scipy.special.entr(1) - math.log2(priors[hit]))
            yield f"brier of {k}", {"op": "brier", "priors": priors, "hit": hit}, want, 1e-12


PARTS = (chi_square, student, normal, items, dispersion, bayes, power, brier)


def look_parts(build, seed):
    fine = True
    for part in PARTS:
        asked = list(part(random.Random(seed)))
        tally = Tally(f"{part.__name__}, {len(asked)} questions")
        for (name, _, want, allowed), got in zip(asked, ask(build, [a[1] for a in asked])):
            for key, value in want.items():
                tally.add(name, key, got[key], value, allowed, 1e-15 if key == "mean" else 0)
        fine &= tally.report()
    return fine


def write_golden():
    def write(name, document):
        head = json.dumps(document["comment"], ensure_ascii=False)
        lines = ",\n".join(json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in document["cases"])
        with open(os.path.join(GOLDEN, name), "w", encoding="utf-8") as f:
            f.write(f'{{"comment":{head},"cases":[\n{lines}\n]}}\n')

    mixed = lme4_cases(GOLDEN_SEED)
    if mixed is not None:
        write("mixed_model.json", mixed)
    cases = [{"name": name, "ask": request, "want": want, "within": allowed} for part in PARTS
             for name, request, want, allowed in part(random.Random(GOLDEN_SEED)) if len(json.dumps(request)) < 4000]
    write("statistics.json", {"comment": f"scipy {scipy.__version__}, statsmodels {statsmodels.__version__}, mpmath "
                                         f"{mpmath.__version__}; tests/oracle/test_statistics.py --golden", "cases": cases})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--golden", action="store_true")
    options = parser.parse_args()
    if options.golden:
        write_golden()
        return 0
    print("seed", options.seed)
    document = lme4_cases(options.seed)
    fine = document is None or look_mixed(options.build, document)
    return 0 if look_parts(options.build, options.seed) & fine else 1


sys.exit(main())
