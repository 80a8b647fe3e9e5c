/* A verdict from as many records as a program can have, and how it grows: 10^3 .. 10^6 records of
 * ten benchmarks, each size in a process of its own, so that its memory is its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "truthtable/replay.h"

#define N_MEASURES   10
#define N_CONDITIONS 10

static void put_program(struct strbuf *sb, size_t n_seeds)
{
    strbuf_adds(sb, "[program]\nname = \"many\"\nschema = 1\nquestion = \"How long?\"\n"
                    "[[factor]]\nname = \"arch\"\nlevels = [\"dense\", \"moe\"]\n"
                    "[[factor]]\nname = \"lr\"\nlevels = [1, 2, 3, 4, 5]\n"
                    "[[factor]]\nname = \"seed\"\nreplicate = true\nlevels = [");
    for (size_t i = 0; i < n_seeds; i++) {
        strbuf_addf(sb, "%zu,", i + 1);
    }
    strbuf_adds(sb, "]\n");
    for (size_t m = 0; m < N_MEASURES; m++) {
        strbuf_addf(sb, "[stage.m%zu]\ncommand = [\"prereg-eval\"]\n", m);
    }
    strbuf_adds(sb, "[measure]\n");
    for (size_t m = 0; m < N_MEASURES; m++) {
        strbuf_addf(sb,
                    "m%zu = { metric = \"m%zu.acc\", items = 1000, chance = 0.25, floor = 0.30 }\n",
                    m, m);
    }
    strbuf_adds(
        sb, "[contrast]\narch = { between = { arch = [\"moe\", \"dense\"] }, over = \"cleared\" }\n"
            "[counter]\nk = { contrast = \"arch\", clears = \"arm_means\", binds = true }\n"
            "[[input]]\nname = \"leads\"\n"
            "levels = [[\"moe\", \"contrast.arch.mean > 0\"], [\"dense\", \"otherwise\"]]\n"
            "[table]\ninputs = [\"leads\"]\nrows = [[\"moe\", \"moe\"], [\"dense\", \"dense\"]]\n"
            "[outcome]\nmoe = { prior = 0.5, title = \"moe\" }\n"
            "dense = { prior = 0.4, title = \"dense\" }\n");
}

static int make_program(size_t n_seeds, struct program **out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct diag diag;
    diag_init(&diag, "many.toml");
    put_program(&text, n_seeds);
    int rc = program_parse(text.buf, text.len, "many.toml", out, &diag, err);
    diag_print(&diag, stderr);
    diag_release(&diag);
    strbuf_release(&text);
    return rc;
}

/* Correct answers of 1000; the mixture a little ahead. */
static double score(size_t cell, size_t stage, size_t n_cells)
{
    size_t k = 320 + (cell * 7 + stage * 13) % 61 + (cell >= n_cells / 2 ? 3 : 0);
    return (double)k / 1000;
}

static void fill(struct evidence *e)
{
    const struct program *p = e->program;
    for (size_t cell = 0; cell < p->n_cells; cell++) {
        for (size_t stage = 0; stage < p->n_stages; stage++) {
            const struct evidence_value v = {.state = VALUE_KNOWN,
                                             .value = score(cell, stage, p->n_cells),
                                             .has_n = true,
                                             .n = 1000};
            evidence_set_task(e, cell, stage, TASK_END_DONE, NULL);
            evidence_add_metric(e, cell, stage, "acc", &v);
        }
    }
}

static double cpu_ms(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

static double peak_mb(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss / 1024;
}

/* Records to the bytes of verdict.json, as the daemon goes about it. */
static int from_evidence(const struct program *p, const char *path, struct err *err)
{
    static const char root[] = "0000000000000000000000000000000000000000000000000000000000000000";
    struct evidence e;
    struct verdict v;
    struct strbuf text = STRBUF_INIT;
    (void)path;
    evidence_init(&e, p);
    fill(&e);
    int rc = verdict_compute(&e, root, root, &v, err);
    if (rc == 0) {
        rc = verdict_pretty(&v, &text, err);
        verdict_release(&v);
    }
    strbuf_release(&text);
    evidence_release(&e);
    return rc;
}

static int from_file(const struct program *p, const char *path, struct err *err)
{
    struct verdict v;
    int rc = replay_run(p, NULL, path, &v, err);
    if (rc == 0) {
        verdict_release(&v);
    }
    return rc;
}

static int write_records(const struct program *p, const char *path, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    strbuf_adds(&text, "{\"schema\":1,\"program\":\"many\",\"label\":\"made up\",\"records\":[\n");
    for (size_t i = 0; i < program_n_tasks(p); i++) {
        const size_t cell = i / p->n_stages;
        const size_t stage = i % p->n_stages;
        strbuf_addf(&text,
                    "%s{\"cell\":\"%s\",\"stage\":\"%s\",\"metrics\":"
                    "{\"acc\":{\"value\":%.3f,\"n\":1000}}}",
                    i == 0 ? "" : ",\n", p->cells[cell].name, p->stages[stage].name,
                    score(cell, stage, p->n_cells));
    }
    strbuf_adds(&text, "]}\n");
    int rc = file_write_atomic(path, text.buf, text.len, 0600, err);
    strbuf_release(&text);
    return rc;
}

struct run {
    double ms;
    double mb;
    bool done;
};

typedef int way_fn(const struct program *p, const char *path, struct err *err);

/* In a process of its own; what it says comes back through a pipe. */
static struct run run_once(size_t n_records, way_fn *way)
{
    struct run run = {0};
    int ends[2];
    if (pipe(ends) != 0) {
        return run;
    }
    pid_t pid = fork();
    if (pid == 0) {
        struct err err;
        struct program *p = NULL;
        int rc = make_program(n_records / N_MEASURES / N_CONDITIONS, &p, &err);
        double from = cpu_ms();
        rc = rc == 0 ? way(p, "many.json", &err) : rc;
        run = (struct run){.ms = cpu_ms() - from, .mb = peak_mb(), .done = rc == 0};
        if (rc != 0) {
            fprintf(stderr, "bench_verdict: %s\n", err.msg);
        }
        bool told = write(ends[1], &run, sizeof(run)) == (ssize_t)sizeof(run);
        _exit(told ? 0 : 1);
    }
    (void)close(ends[1]);
    if (pid < 0 || read(ends[0], &run, sizeof(run)) != (ssize_t)sizeof(run)) {
        run.done = false;
    }
    (void)close(ends[0]);
    (void)waitpid(pid, NULL, 0);
    return run;
}

#define RUNS_MAX 20

static int measure(const char *what, size_t n, int repetitions, way_fn *way, const char *aims[2])
{
    struct run runs[RUNS_MAX];
    for (int i = 0; i < repetitions; i++) {
        runs[i] = run_once(n, way);
        if (!runs[i].done) {
            return -1;
        }
    }
    for (int k = 0; k < 2; k++) {
        printf("{\"figure\":\"%s, %zu records, %s\",\"unit\":\"%s\"%s,\"values\":[", what, n,
               k == 0 ? "processor time" : "peak memory", k == 0 ? "ms" : "MB", aims[k]);
        for (int i = 0; i < repetitions; i++) {
            printf("%s%.1f", i == 0 ? "" : ",", k == 0 ? runs[i].ms : runs[i].mb);
        }
        puts("]}");
    }
    (void)fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    const int repetitions = argc > 1 && strcmp(argv[1], "--long") == 0 ? 9 : 3;
    static const char *const none[2] = {"", ""};
    static const char *const aim[2] = {",\"aim\":2000,\"limit\":20000",
                                       ",\"aim\":500,\"limit\":4000"};
    int rc = 0;
    for (size_t n = 1000; rc == 0 && n <= 1000000; n *= 10) {
        struct err err;
        struct program *p = NULL;
        const char *aims[2] = {n == 1000000 ? aim[0] : none[0], n == 1000000 ? aim[1] : none[1]};
        rc = measure("verdict", n, repetitions, from_evidence, aims);
        if (rc == 0 && (make_program(n / N_MEASURES / N_CONDITIONS, &p, &err) != 0 ||
                        write_records(p, "many.json", &err) != 0)) {
            fprintf(stderr, "bench_verdict: %s\n", err.msg);
            rc = -1;
        }
        program_free(p);
        const char *no_aims[2] = {none[0], none[1]};
        rc = rc == 0 ? measure("replay of a file", n, repetitions, from_file, no_aims) : rc;
    }
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
