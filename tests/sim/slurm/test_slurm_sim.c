/*
 * The book of the Slurm executor against a simulated Slurm: many small worlds with every fault, and
 * large ones through the array path. PREREGD_SEED=n runs one small world; PREREGD_LONG=1 runs many
 * more and 100,000 tasks; PREREGD_SPARSE=n an n-th part, of other seeds.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/text.h"
#include "tests/sim/slurm/parts.h"
#include "tests/unit/sparse.h"

enum { N_SMALL = 300 };

struct totals {
    uint64_t n_steps;
    uint64_t n_attempts;
    uint64_t n_ends[END_REASON_NR];
    uint64_t n_fates[FATE_NR];
    uint64_t n_faults[FAULT_NR];
};

static void add(struct totals *t, const struct farm *f)
{
    t->n_steps += f->n_steps;
    t->n_attempts += f->n_attempts;
    for (size_t i = 0; i < END_REASON_NR; i++) {
        t->n_ends[i] += f->n_ends[i];
    }
    for (size_t i = 0; i < FATE_NR; i++) {
        t->n_fates[i] += f->n_fates[i];
    }
    for (size_t i = 0; i < FAULT_NR; i++) {
        t->n_faults[i] += f->n_faults[i];
    }
}

static struct farm_config small_config(uint64_t seed, bool core)
{
    struct rng rng;
    rng_seed(&rng, seed ^ 0x51u);
    const bool cancelled = core && seed % 5 == 0;
    return (struct farm_config){.seed = seed,
                                .n_tasks = 20 + (uint32_t)rng_below(&rng, 180),
                                .n_nodes = 2 + (uint32_t)rng_below(&rng, 6),
                                .cpus = 1 + (uint32_t)rng_below(&rng, 8),
                                .max_queued = 5 + (uint32_t)rng_below(&rng, 100),
                                .max_array = 1 + (uint32_t)rng_below(&rng, 40),
                                .min_job_age_ms = 2000 + (int64_t)rng_below(&rng, 300000),
                                .work_ms = 2000 + (int64_t)rng_below(&rng, 200000),
                                .array = rng_below(&rng, 4) > 0,
                                .faults = true,
                                .unfit = seed % 3 == 0,
                                .cancel_ms = cancelled ? 1 + (int64_t)rng_below(&rng, 3600000) : 0,
                                .core = core};
}

static int all_happened(const struct totals *t, bool core)
{
    int rc = 0;
    for (size_t i = 0; i < FATE_NR; i++) {
        if (t->n_fates[i] == 0) {
            (void)fprintf(stderr, "fate %zu never came\n", i);
            rc = 1;
        }
    }
    for (size_t i = 0; i < FAULT_NR; i++) {
        if (t->n_faults[i] == 0 && (core || i != FAULT_CANCELLED)) {
            (void)fprintf(stderr, "fault %zu never came\n", i);
            rc = 1;
        }
    }
    static const enum end_reason REASONS[] = {END_EXITED,        END_LOST,   END_HOST_LOST,
                                              END_PREEMPTED,     END_MEMORY, END_DEADLINE,
                                              END_NEVER_LAUNCHED};
    for (size_t i = 0; i < sizeof(REASONS) / sizeof(REASONS[0]); i++) {
        if (t->n_ends[REASONS[i]] == 0) {
            (void)fprintf(stderr, "no attempt ended as %s\n", end_reason_name(REASONS[i]));
            rc = 1;
        }
    }
    return rc;
}

static int run_small(uint64_t first, uint64_t n, bool core)
{
    struct totals t = {0};
    int64_t since_ns = clock_mono_ns();
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct farm f;
        struct farm_config config = small_config(seed, core);
        farm_run(&config, &f);
        add(&t, &f);
        farm_release(&f);
    }
    (void)printf("%s, %llu worlds: %llu steps, %llu attempts, %llu restarts, %.1f s\n",
                 core ? "core and book" : "book", (unsigned long long)n,
                 (unsigned long long)t.n_steps, (unsigned long long)t.n_attempts,
                 (unsigned long long)t.n_faults[FAULT_RESTART],
                 (double)(clock_mono_ns() - since_ns) / 1e9);
    return n >= N_SMALL ? all_happened(&t, core) : 0;
}

static void run_large(uint64_t seed, uint32_t n_tasks, bool core)
{
    struct farm f;
    const struct farm_config config = {.seed = seed,
                                       .n_tasks = n_tasks,
                                       .n_nodes = 200,
                                       .cpus = 16,
                                       .max_queued = 10000,
                                       .max_array = 1001,
                                       .min_job_age_ms = 30000,
                                       .work_ms = 60000,
                                       .array = true,
                                       .faults = true,
                                       .core = core};
    int64_t since_ns = clock_mono_ns();
    farm_run(&config, &f);
    (void)printf("seed %llu, %u tasks: %llu steps, %u attempts, %u batches, %llu restarts, at most "
                 "%u jobs held, %.1f s\n",
                 (unsigned long long)seed, n_tasks, (unsigned long long)f.n_steps, f.n_attempts,
                 f.n_batches, (unsigned long long)f.n_faults[FAULT_RESTART], f.most_held,
                 (double)(clock_mono_ns() - since_ns) / 1e9);
    farm_release(&f);
}

/* One sbatch for each attempt: the bucket must hold (rule 10). */
static void run_singles(uint32_t n)
{
    struct farm f;
    const struct farm_config config = {.seed = 1,
                                       .n_tasks = n,
                                       .n_nodes = 100,
                                       .cpus = 16,
                                       .max_queued = n,
                                       .max_array = 1001,
                                       .min_job_age_ms = 30000,
                                       .work_ms = 60000};
    farm_run(&config, &f);
    (void)printf("%u single jobs: %llu calls in %lld s\n", n, (unsigned long long)f.n_calls,
                 (long long)(f.now_ms - INT64_C(1763694202000)) / 1000);
    farm_release(&f);
}

/* A quiet cluster: n long jobs, of which a quarter runs. Calls a minute over its last ten. */
static void measure_calls(uint32_t n)
{
    struct farm f;
    const struct farm_config config = {.seed = 1,
                                       .n_tasks = n,
                                       .n_nodes = 1 + n / 64,
                                       .cpus = 16,
                                       .max_queued = n,
                                       .max_array = 1001,
                                       .min_job_age_ms = 300000,
                                       .work_ms = INT64_C(100000000),
                                       .array = true,
                                       .stop_ms = INT64_C(3600000)};
    farm_run(&config, &f);
    uint64_t recent = 0;
    for (uint64_t i = 0; i < f.n_calls && i < 256; i++) {
        recent += f.calls_ms[i] > f.now_ms - 600000;
    }
    (void)printf("%u jobs in the queue: %.1f calls a minute (%llu in the first hour, %llu of them "
                 "sbatch)\n",
                 n, (double)recent / 10, (unsigned long long)f.n_calls,
                 (unsigned long long)f.n_calls_of[SLURM_ACT_SUBMIT]);
    farm_release(&f);
}

static int by_size(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return (*x > *y) - (*x < *y);
}

/* Nodes die under n long jobs: from a node's death to the ends of its attempts, after which the
 * core starts others. Slurm notices after 10 to 120 s. */
static void measure_death(uint32_t n)
{
    struct farm f;
    const struct farm_config config = {.seed = 1,
                                       .n_tasks = n,
                                       .n_nodes = 1 + n / 16,
                                       .cpus = 16,
                                       .max_queued = n,
                                       .max_array = 1001,
                                       .min_job_age_ms = 300000,
                                       .work_ms = INT64_C(100000000),
                                       .array = true,
                                       .stop_ms = INT64_C(10800000),
                                       .break_ms = INT64_C(300000)};
    farm_run(&config, &f);
    if (f.n_spans > 0) {
        qsort(f.spans, f.n_spans, sizeof(*f.spans), by_size);
        (void)printf("%u jobs, %zu lost with %llu nodes: %.0f s from death to end (median; %.0f to "
                     "%.0f)\n",
                     n, f.n_spans, (unsigned long long)f.n_faults[FAULT_NODE_DIED],
                     (double)f.spans[f.n_spans / 2] / 1e3, (double)f.spans[0] / 1e3,
                     (double)f.spans[f.n_spans - 1] / 1e3);
    }
    farm_release(&f);
}

int main(void)
{
    const char *one = getenv("PREREGD_SEED");
    bool is_long = getenv("PREREGD_LONG") != NULL;
    int64_t seed = 0;
    struct err err = {0};
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (one != NULL) {
        if (text_to_int(one, 0, INT64_MAX, &seed, &err) != 0) {
            (void)fprintf(stderr, "PREREGD_SEED: %s\n", err.msg);
            return 2;
        }
        return run_small((uint64_t)seed, 1, false) | run_small((uint64_t)seed, 1, true);
    }
    run_large(1, 5000, true);
    run_singles(1000);
    const uint64_t part = sparse_part();
    for (uint32_t n = 1; n <= (part > 1 ? 100 : 10000); n *= 100) {
        measure_calls(n);
        measure_death(n);
    }
    if (is_long) {
        for (seed = 2; seed < 7; seed++) {
            run_large((uint64_t)seed, 100000, true);
        }
    }
    /* A part of the worlds is made of the seeds after those of a whole run. */
    const uint64_t n_small = is_long ? 3000 : N_SMALL;
    const uint64_t first = part > 1 ? n_small + 1 : 1;
    int rc = run_small(first, n_small / part, false);
    rc |= run_small(first, n_small / part, true);
    return rc;
}
