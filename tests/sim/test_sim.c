/*
 * The scheduler core under random faults: SEEDS worlds of 200 tasks with every invariant checked
 * after every step, and a few of 100,000 tasks with incremental checks. PREREGD_SEED=n runs one
 * seed; PREREGD_LONG=1 runs many more and a million tasks; PREREGD_SPARSE=n an n-th part, of other
 * seeds.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/text.h"
#include "tests/sim/world.h"
#include "tests/unit/sparse.h"

enum { N_SMALL = 500 };

static void report(const char *what, const struct sim *t, int64_t since_ns)
{
    (void)printf(
        "%s: %llu steps, %llu attempts, %llu restarts, %llu signals, %llu unknown, %.1f s\n", what,
        (unsigned long long)t->n_steps, (unsigned long long)t->n_starts,
        (unsigned long long)t->n_restarts, (unsigned long long)t->n_kills,
        (unsigned long long)t->n_unknown, (double)(clock_mono_ns() - since_ns) / 1e9);
}

static void report_amended(const struct sim_amend_totals *a)
{
    unsigned long long taken = 0;
    unsigned long long refused = 0;
    for (size_t i = 0; i < SIM_AMEND_NR; i++) {
        taken += a->n_taken[i];
        refused += a->n_refused[i];
    }
    (void)printf("%llu amendments (%llu of a metric while results were verified), %llu refused; "
                 "checks: %llu unexpected, %llu stale, %llu made again, "
                 "%llu held after the grid\n",
                 taken, (unsigned long long)a->n_while_verifying, refused,
                 (unsigned long long)a->n_unexpected, (unsigned long long)a->n_stale,
                 (unsigned long long)a->n_again, (unsigned long long)a->n_repeated);
}

/* A fault that never happened proves nothing. */
static int all_happened(const struct sim *t)
{
    for (size_t i = 0; i < FATE_NR; i++) {
        if (t->n_by_fate[i] == 0) {
            (void)fprintf(stderr, "fate %zu never came\n", i);
            return 1;
        }
    }
    for (size_t i = 0; i < SIM_AMEND_NR; i++) {
        if (t->amended.n_taken[i] == 0 || t->amended.n_refused[i] == 0) {
            (void)fprintf(stderr, "amendments of kind %zu: none were taken, or none refused\n", i);
            return 1;
        }
    }
    const struct sim_amend_totals *a = &t->amended;
    if (a->n_while_verifying == 0 || a->n_again == 0 || a->n_stale == 0 || a->n_unexpected == 0 ||
        a->n_held == 0 || a->n_repeated == 0) {
        (void)fprintf(stderr, "of apparatus checks something never came\n");
        return 1;
    }
    if (t->n_failing == 0 || t->n_revived == 0 || t->n_let_fail == 0) {
        (void)fprintf(stderr, "of stages that fail something never came\n");
        return 1;
    }
    if (t->gpu.n_starts == 0 || t->gpu.n_shared == 0) {
        (void)fprintf(stderr, "no GPU was used, or none shared\n");
        return 1;
    }
    return t->n_behind == 0 || t->n_removed == 0 || t->n_restarts == 0 || t->n_kills == 0 ||
           t->n_unknown == 0 || t->n_early == 0 || t->n_stops == 0;
}

static int run_small(uint64_t first, uint64_t n)
{
    struct sim totals = {0};
    int64_t since_ns = clock_mono_ns();
    for (uint64_t seed = first; seed < first + n; seed++) {
        sim_run(&(struct sim_config){.seed = seed, .n_tasks = 200, .full_checks = true}, &totals);
    }
    report("200 tasks", &totals, since_ns);
    report_amended(&totals.amended);
    (void)printf("%llu starts with GPUs, %llu of them on one that another has a share of\n",
                 (unsigned long long)totals.gpu.n_starts, (unsigned long long)totals.gpu.n_shared);
    (void)printf("%llu pauses for stages that failed, %llu tasks revived, %llu times let fail\n",
                 (unsigned long long)totals.n_failing, (unsigned long long)totals.n_revived,
                 (unsigned long long)totals.n_let_fail);
    return n >= N_SMALL ? all_happened(&totals) : 0; /* fewer need not show everything */
}

static void run_large(uint64_t first, uint64_t n, uint32_t n_tasks)
{
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct sim totals = {0};
        char what[64];
        int64_t since_ns = clock_mono_ns();
        (void)snprintf(what, sizeof(what), "seed %llu, %u tasks", (unsigned long long)seed,
                       n_tasks);
        sim_run(&(struct sim_config){.seed = seed, .n_tasks = n_tasks}, &totals);
        report(what, &totals, since_ns);
    }
}

int main(void)
{
    const char *one = getenv("PREREGD_SEED");
    bool is_long = getenv("PREREGD_LONG") != NULL;
    int64_t seed = 0;
    const uint64_t part = sparse_part();
    struct err err = {0};
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (one != NULL) {
        if (text_to_int(one, 0, INT64_MAX, &seed, &err) != 0) {
            (void)fprintf(stderr, "PREREGD_SEED: %s\n", err.msg);
            return 2;
        }
        return run_small((uint64_t)seed, 1);
    }
    /* A part of the worlds is made of the seeds after those of a whole run. */
    const uint64_t n_small = is_long ? 40000 : N_SMALL;
    int rc = run_small(part > 1 ? n_small + 1 : 1, n_small / part);
    run_large(part > 1 ? 4 : is_long ? 1 : 2, part > 1 ? 1 : is_long ? 20 : 2, 100000);
    if (is_long) {
        run_large(1, 1, 1000000);
    }
    return rc;
}
