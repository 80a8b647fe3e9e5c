/*
 * Double-double arithmetic without fused multiply-add: a number as the unevaluated sum of two
 * doubles. The sums of pair_sum() (Knuth) and pair_quick_sum() (Dekker) and the product of
 * pair_product() (Veltkamp, Dekker) are exact while nothing overflows or falls below 2^-1022; the
 * rest rounds at about 2^-102 of the result.
 */
#ifndef BASE_MATH_PAIR_H
#define BASE_MATH_PAIR_H

struct pair {
    double hi;
    double lo; /* |lo| <= half a unit in the last place of hi */
};

static inline struct pair pair_sum(double a, double b)
{
    double s = a + b;
    double t = s - a;

    return (struct pair){s, (a - (s - t)) + (b - t)};
}

/* |a| >= |b| or a = 0 */
static inline struct pair pair_quick_sum(double a, double b)
{
    double s = a + b;

    return (struct pair){s, b - (s - a)};
}

static inline struct pair pair_product(double a, double b)
{
    const double split = 0x1p27 + 1;
    double p = a * b;
    double c = split * a, d = split * b;
    double ah = c - (c - a), bh = d - (d - b);
    double al = a - ah, bl = b - bh;

    return (struct pair){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

static inline struct pair pair_multiply(struct pair a, struct pair b)
{
    struct pair p = pair_product(a.hi, b.hi);

    return pair_quick_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

static inline struct pair pair_add(struct pair a, struct pair b)
{
    struct pair s = pair_sum(a.hi, b.hi);

    return pair_quick_sum(s.hi, s.lo + (a.lo + b.lo));
}

static inline struct pair pair_divide(struct pair a, struct pair b)
{
    double q = a.hi / b.hi;
    struct pair p = pair_product(q, b.hi);

    return pair_quick_sum(q, (((a.hi - p.hi) - p.lo) + (a.lo - q * b.lo)) / b.hi);
}

/* e^(x.hi + x.lo) as 2^*n (1 + the pair returned), for |x.hi| <= 760. */
struct pair pair_exp(struct pair x, int *n);

#endif
