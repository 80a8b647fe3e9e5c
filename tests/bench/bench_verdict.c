/* A verdict from as many records as a program can have, 10^6 of ten benchmarks, and with --long how
 * it grows from 10^4 on. Made in memory, to the digest of verdict.json, as the daemon goes about
 * it; and `preregctl replay` of a file, whole. Each in a process of its own, so that its memory is
 * its own.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/xalloc.h"
#include "prereg/load/program_load.h"
#include "truthtable/evaluate/verdict_file.h"

#define PROGRAM      "many.toml"
#define RECORDS      "many.json"
#define RECORDS_MAX  ((size_t)1000000)
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

static int make_program(size_t n_records, struct plan_program **out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct diag diag;
    diag_init(&diag, PROGRAM);
    put_program(&text, n_records / N_MEASURES / N_CONDITIONS);
    int rc = program_parse(text.buf, text.len, PROGRAM, out, &diag, err);
    rc = rc == 0 ? file_write_atomic(PROGRAM, text.buf, text.len, 0600, err) : rc;
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
    const struct plan_program *p = e->program;
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

static double cpu_ms(const struct rusage *u)
{
    return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1e3 +
           (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e3;
}

static double own_cpu_ms(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return cpu_ms(&u);
}

/* Records to the digest of verdict.json. */
static int compute(const struct plan_program *p, struct err *err)
{
    static const char root[] = "0000000000000000000000000000000000000000000000000000000000000000";
    struct evidence e;
    struct table_verdict v;
    struct strbuf text = STRBUF_INIT;
    evidence_init(&e, p);
    fill(&e);
    int rc = verdict_compute(&e, root, root, &v, err);
    if (rc == 0) {
        rc = verdict_pretty(&v, &text, err);
        verdict_release(&v);
    }
    if (rc == 0) {
        const struct digest d = digest_bytes(text.buf, text.len);
        rc = digest_is_zero(&d) ? err_set(err, ERR_INVALID, "no digest") : 0;
    }
    strbuf_release(&text);
    evidence_release(&e);
    return rc;
}

static int write_records(const struct plan_program *p, struct err *err)
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
    int rc = file_write_atomic(RECORDS, text.buf, text.len, 0600, err);
    strbuf_release(&text);
    return rc;
}

/* ---- what runs in a child; each gives the milliseconds that count, or a negative number ---- */

typedef double child_fn(size_t n_records);

static double say(const struct err *err)
{
    fprintf(stderr, "bench_verdict: %s\n", err->msg);
    return -1;
}

/* PROGRAM and RECORDS. */
static double child_files(size_t n_records)
{
    struct err err;
    struct plan_program *p = NULL;
    int rc = make_program(n_records, &p, &err);
    rc = rc == 0 ? write_records(p, &err) : rc;
    program_free(p);
    return rc == 0 ? 0 : say(&err);
}

static double child_verdict(size_t n_records)
{
    struct err err;
    struct plan_program *p = NULL;
    if (make_program(n_records, &p, &err) != 0) {
        return say(&err);
    }
    const double from = own_cpu_ms();
    int rc = compute(p, &err);
    const double ms = own_cpu_ms() - from;
    program_free(p);
    return rc == 0 ? ms : say(&err);
}

/* Replaced by preregctl: all of its time counts. */
static double child_replay(size_t n_records)
{
    (void)n_records;
    const char *build = getenv("PREREGD_BUILD");
    char *path = path_join(build == NULL ? "." : build, "bin/preregctl");
    int out = open("/dev/null", O_WRONLY);
    if (out >= 0 && dup2(out, STDOUT_FILENO) >= 0) {
        (void)execl(path, "preregctl", "replay", PROGRAM, RECORDS, (char *)NULL);
    }
    fprintf(stderr, "bench_verdict: %s does not start; PREREGD_BUILD names the build\n", path);
    return -1;
}

struct run {
    double ms;
    double mb;
    bool done;
};

/* The parent holds next to nothing, for a child begins with its parent's peak. */
static struct run run_once(size_t n_records, child_fn *child)
{
    struct run run = {0};
    struct rusage u;
    double ms = 0;
    int status = 0;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return run;
    }
    pid_t pid = fork();
    if (pid == 0) {
        ms = child(n_records);
        bool told = write(ends[1], &ms, sizeof(ms)) == (ssize_t)sizeof(ms);
        _exit(told && ms >= 0 ? 0 : 1);
    }
    (void)close(ends[1]);
    bool told = pid > 0 && read(ends[0], &ms, sizeof(ms)) == (ssize_t)sizeof(ms);
    (void)close(ends[0]);
    if (pid > 0 && wait4(pid, &status, 0, &u) == pid) {
        run.done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        run.ms = told ? ms : cpu_ms(&u);
        run.mb = (double)u.ru_maxrss / 1024;
    }
    return run;
}

#define RUNS_MAX 20

static int measure(const char *what, size_t n, int repetitions, child_fn *child)
{
    static const char *const aims[2] = {",\"aim\":2000,\"limit\":20000",
                                        ",\"aim\":500,\"limit\":4000"};
    struct run runs[RUNS_MAX];
    for (int i = 0; i < repetitions; i++) {
        runs[i] = run_once(n, child);
        if (!runs[i].done) {
            return -1;
        }
    }
    for (int k = 0; k < 2; k++) {
        printf("{\"figure\":\"%s, %zu records, %s\",\"unit\":\"%s\"%s,\"values\":[", what, n,
               k == 0 ? "processor time" : "peak memory", k == 0 ? "ms" : "MB",
               n == RECORDS_MAX ? aims[k] : "");
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
    static const size_t sizes[] = {10000, 100000, 300000, RECORDS_MAX};
    const bool is_long = argc > 1 && strcmp(argv[1], "--long") == 0;
    const int repetitions = is_long ? 9 : 3;
    int rc = 0;
    for (size_t i = is_long ? 0 : ARRAY_LEN(sizes) - 1; rc == 0 && i < ARRAY_LEN(sizes); i++) {
        rc = measure("verdict", sizes[i], repetitions, child_verdict);
        rc = rc == 0 && !run_once(sizes[i], child_files).done ? -1 : rc;
        rc = rc == 0 ? measure("preregctl replay", sizes[i], repetitions, child_replay) : rc;
    }
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
