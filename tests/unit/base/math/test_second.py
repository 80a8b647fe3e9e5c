#!/usr/bin/env python3
"""A second implementation of the elementary functions, written from docs/arithmetic.md alone: the same bits as base/math.

Names are the page's. Python's numbers are IEEE doubles, and it rounds a fraction of whole numbers once.

  test_second.py elementary_values
"""

import math
import random
import subprocess
import sys

DRAWS = 4000


def parts(text):
    return tuple(map(float.fromhex, text.split()))


MAGIC = 1.5 * 2.0 ** 52
L = parts("0x1.62e42feep-1 0x1.a39ef356p-33 0x1.93c7673007e5fp-65")
H = parts("0x1.921fb54p0 0x1.10b461p-30 0x1.a62633p-58 0x1.45c06e0e68948p-86")
T = parts("0x1.5555555555555p-2 0x1.5555555555555p-56")
PER_LN2 = parts("0x1.71547652b82fep0 0x1.777d0ffda0d24p-56")
PER_LN10 = parts("0x1.bcb7b1526e50ep-2 0x1.95355baaafad3p-57")
ROOT_2, LN2_REST, PER_PI_2 = parts("0x1.6a09e667f3bcdp0 0x1.a39ef35793c76p-33 0x1.45f306dc9c883p-1")


def total(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def quick(a, b):
    s = a + b
    return s, b - (s - a)


def product(a, b):
    p = a * b
    c, d = 134217729 * a, 134217729 * b
    big_a, big_b = c - (c - a), d - (d - b)
    small_a, small_b = a - big_a, b - big_b
    return p, ((big_a * big_b - p) + big_a * small_b + small_a * big_b) + small_a * small_b


def times(a, b):
    p = product(a[0], b[0])
    return quick(p[0], p[1] + (a[0] * b[1] + a[1] * b[0]))


def plus(a, b):
    s = total(a[0], b[0])
    return quick(s[0], s[1] + (a[1] + b[1]))


def over(a, b):
    q = a[0] / b[0]
    p = product(q, b[0])
    return quick(q, (((a[0] - p[0]) - p[1]) + (a[1] - q * b[1])) / b[0])


def horner(x, coefficients):
    p = coefficients[0]
    for c in coefficients[1:]:
        p = p * x + c
    return p


def e_to(x):
    k = (x[0] * PER_LN2[0] + MAGIC) - MAGIC
    r = total(x[0] - k * L[0], -(k * L[1]))
    r = quick(r[0], r[1] + (x[1] - k * L[2]))
    q = product(r[0], r[0])
    p = horner(r[0], [1 / math.factorial(n) for n in range(14, 2, -1)])
    s = quick(r[0], q[0] / 2)
    return int(k), (s[0], s[1] + ((r[1] + (q[1] / 2 + r[0] * r[1])) + r[0] * q[0] * p))


def exp_pair(x):
    k, s = e_to(x)
    y = quick(1.0, s[0])
    return math.ldexp(y[0] + (y[1] + s[1]), k)


def exp(x):
    return 1 + x if abs(x) < 2.0 ** -54 else exp_pair((x, 0.0))


def expm1(x):
    if abs(x) < 2.0 ** -54:
        return x
    k, s = e_to((x, 0.0))
    if k == 0:
        return s[0] + s[1]
    t = total(2.0 ** k, -1.0)
    u = total(t[0], 2.0 ** k * s[0])
    return u[0] + (u[1] + (t[1] + 2.0 ** k * s[1]))


def split(x):
    m, e = math.frexp(x)
    m, e = m * 2, e - 1
    return (m / 2, e + 1) if m > ROOT_2 else (m, e)


def series(z):
    return horner(z, [1 / n for n in range(23, 4, -2)])


def log(x):
    m, e = split(x)
    f, d = m - 1, quick(1.0, m)
    r = 1 / d[0]
    s = f * r
    p = product(s, d[0])
    g = (((f - p[0]) - p[1]) - s * d[1]) * r
    z = s * s
    v = (2 * s) * (z * (T[0] + z * series(z)))
    u = quick(e * L[0], 2 * s)
    return u[0] + (u[1] + ((2 * g + v) + e * LN2_REST))


def ln_mantissa(m):
    s = over((m - 1, 0.0), quick(1.0, m))
    z = times(s, s)
    w = quick(T[0], z[0] * series(z[0]))
    g = (2 * s[0], 2 * s[1])
    v = times(g, times(z, (w[0], w[1] + T[1])))
    h = quick(g[0], v[0])
    return quick(h[0], h[1] + (g[1] + v[1]))


def ln_pair(x):
    m, e = split(x)
    c = total(e * L[0], e * L[1])
    return plus((c[0], c[1] + e * L[2]), ln_mantissa(m))


def log2(x):
    m, e = split(x)
    n = times(ln_mantissa(m), PER_LN2)
    u = total(float(e), n[0])
    return u[0] + (u[1] + n[1])


def log10(x):
    return times(ln_pair(x), PER_LN10)[0]


def log1p(x):
    if abs(x) < 2.0 ** -54:
        return x
    u = total(1.0, x)
    q, ln = u[1] / u[0], ln_pair(u[0])
    t = total(ln[0], q)
    return t[0] + (t[1] + (ln[1] - q * q / 2))


def power(x, y):
    ln = ln_pair(x)
    return 1.0 if abs(y * ln[0]) < 2.0 ** -54 else exp_pair(times(ln, (y, 0.0)))


def reduce(x):
    k = (x * PER_PI_2 + MAGIC) - MAGIC
    b = total(x - k * H[0], -(k * H[1]))
    c = total(b[0], -(k * H[2]))
    return int(k) % 4, total(c[0], (b[1] + c[1]) - k * H[3])


def sine(r):
    z = r[0] * r[0]
    p = horner(z, [(1 if n % 4 == 1 else -1) / math.factorial(n) for n in range(17, 2, -2)])
    return r[0] + (r[0] * z * p + r[1] * (1 - z / 2))


def cosine(r):
    z = product(r[0], r[0])
    h = quick(1.0, -z[0] / 2)
    p = horner(z[0], [(1 if n % 4 == 0 else -1) / math.factorial(n) for n in range(16, 3, -2)])
    return h[0] + (((h[1] - z[1] / 2) - r[0] * r[1]) + z[0] * z[0] * p)


def sin(x):
    if abs(x) < 2.0 ** -27:
        return x
    k, r = reduce(x)
    return (sine(r), cosine(r), -sine(r), -cosine(r))[k]


def cos(x):
    if abs(x) < 2.0 ** -27:
        return 1.0
    k, r = reduce(x)
    return (cosine(r), -sine(r), -cosine(r), sine(r))[k]


# name, function, range; every other argument is drawn by magnitude
FUNCTIONS = (("exp", exp, -700, 700), ("expm1", expm1, -30, 30), ("log", log, 1e-300, 50), ("log1p", log1p, -0.98, 9),
             ("log2", log2, 1e-300, 50), ("log10", log10, 1e-300, 1e10), ("sin", sin, -1e7, 1e7), ("cos", cos, -100, 100))


def questions(rng):
    for name, f, low, high in FUNCTIONS:
        for i in range(DRAWS):
            x = rng.uniform(low, high)
            if i % 2 == 0:
                x = 10.0 ** rng.uniform(-12, math.log10(min(high, -low) if low < 0 else high))
                x = -x if low < 0 and rng.random() < 0.5 else x
            yield name, x, 0.0, f(x)
    for _ in range(DRAWS):
        for x, y in ((rng.uniform(1e3, 1e6), rng.uniform(-1, 0)), (rng.uniform(0.8, 0.9999), float(rng.randrange(1, 3000)))):
            yield "pow", x, y, power(x, y)


def main():
    rows = list(questions(random.Random(5)))
    asked = "".join(f"{name} {x.hex()} {y.hex()}\n" for name, x, y, _ in rows)
    answers = subprocess.run([sys.argv[1]], input=asked, text=True, capture_output=True, check=True).stdout.split()
    apart = [f"{row[0]}({row[1].hex()}, {row[2].hex()}): {answer}, the page says {row[3].hex()}"
             for row, answer in zip(rows, answers) if float.fromhex(answer) != row[3]]
    print("\n".join(apart[:10]))
    print(f"{len(rows)} values, {len(answers)} answers, {len(apart)} apart")
    sys.exit(1 if apart or len(answers) != len(rows) else 0)


main()
