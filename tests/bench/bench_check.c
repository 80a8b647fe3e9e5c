/* How long `check` takes by the size of the table, part by part: reading the TOML, loading it into
 * a program, the proofs, the report as JSON. Tables of 2^12 and 2^16 rows, with --long 2^8 to
 * 2^18: inputs of two levels, all their combinations, three outcomes. Three shapes of inputs: each
 * about a quantity of its own; nested thresholds on one quantity, where all but n + 1 of 2^n rows
 * are impossible; and the same with a gap between the levels, where an input may have no level. CPU
 * time of this process, the kernel's included. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/json/json.h"
#include "base/strbuf.h"
#include "prereg/load/program_load.h"
#include "prereg/load/toml.h"
#include "prereg/program/program.h"
#include "truthtable/prove/check.h"

static const char HEAD[] =
    "[program]\nname = \"wide\"\nschema = 1\nquestion = \"How wide?\"\n"
    "[[factor]]\nname = \"arch\"\nlevels = [\"dense\", \"moe\"]\n"
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2, 3]\nreplicate = true\n"
    "[stage.train]\ncommand = [\"prereg-train\"]\nparams = { seed = \"$seed\", arch = \"$arch\" }\n"
    "[contrast]\nc = { between = { arch = [\"moe\", \"dense\"] } }\n"
    "[outcome]\nO1 = { prior = 0.3, title = \"one\" }\nO2 = { prior = 0.3, title = \"two\" }\n"
    "O3 = { prior = 0.3, title = \"three\" }\n";

enum shape { SHAPE_APART, SHAPE_NESTED, SHAPE_GAPS, SHAPE_NR };

static const char *const shape_names[SHAPE_NR] = {"", ", nested thresholds",
                                                  ", nested thresholds with gaps"};

static void write_input(struct strbuf *sb, enum shape shape, unsigned i)
{
    int percent = -85 + 10 * (int)i; /* 18 of them within -1..1 */
    strbuf_addf(sb, "[[input]]\nname = \"i%u\"\nlevels = [[\"a\", ", i);
    switch (shape) {
    case SHAPE_NESTED:
        strbuf_addf(sb, "\"contrast.c[m0].mean > %.2f\"], [\"b\", \"otherwise\"]]\n",
                    percent / 100.0);
        break;
    case SHAPE_GAPS:
        strbuf_addf(sb,
                    "\"contrast.c[m0].mean > %.2f\"], [\"b\", \"contrast.c[m0].mean < "
                    "%.2f\"]]\n",
                    percent / 100.0, (percent - 5) / 100.0);
        break;
    case SHAPE_APART:
    case SHAPE_NR:
        strbuf_addf(sb, "\"contrast.c[m%u].mean > 0.0%u\"], [\"b\", \"otherwise\"]]\n", i, i + 1);
        break;
    }
}

static void write_program(struct strbuf *sb, enum shape shape, unsigned n_inputs)
{
    strbuf_adds(sb, HEAD);
    strbuf_adds(sb, "[measure]\n");
    for (unsigned i = 0; i < n_inputs; i++) {
        strbuf_addf(sb, "m%u = { metric = \"train.m%u\", chance = 0.25, items = 1000 }\n", i, i);
    }
    for (unsigned i = 0; i < n_inputs; i++) {
        write_input(sb, shape, i);
    }
    strbuf_adds(sb, "[table]\ninputs = [");
    for (unsigned i = 0; i < n_inputs; i++) {
        strbuf_addf(sb, "%s\"i%u\"", i > 0 ? ", " : "", i);
    }
    strbuf_adds(sb, "]\nrows = [\n");
    for (unsigned r = 0; r < 1U << n_inputs; r++) {
        strbuf_addc(sb, '[');
        for (unsigned i = 0; i < n_inputs; i++) {
            strbuf_adds(sb, (r >> i & 1U) != 0 ? "\"a\"," : "\"b\",");
        }
        strbuf_addf(sb, "\"O%u\"],\n", 1 + r % 3);
    }
    strbuf_adds(sb, "]\n");
}

static double cpu_ms(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

enum { PART_TOML, PART_LOAD, PART_PROVE, PART_JSON, PART_ALL, PART_NR };

static int check_once(const struct strbuf *text, double ms[PART_NR], struct err *err)
{
    struct diag diag;
    struct plan_program *p = NULL;
    struct arena arena;
    struct toml_node *root = NULL;
    struct check_report report;
    diag_init(&diag, "grid.toml");
    arena_init(&arena);
    double t0 = cpu_ms();
    int rc = toml_parse(text->buf, text->len, &arena, &root, &diag);
    double t1 = cpu_ms();
    arena_release(&arena);
    double t2 = cpu_ms();
    rc = rc == 0 ? program_parse(text->buf, text->len, "grid.toml", &p, &diag, err) : rc;
    double t3 = cpu_ms();
    if (rc == 0) {
        rc = check_run(p, NULL, &report, &diag, err);
        double t4 = cpu_ms();
        cJSON_Delete(check_json(&report));
        double t5 = cpu_ms();
        check_release(&report);
        ms[PART_TOML] = t1 - t0;
        ms[PART_LOAD] = t3 - t2 - (t1 - t0);
        ms[PART_PROVE] = t4 - t3;
        ms[PART_JSON] = t5 - t4;
        ms[PART_ALL] = t5 - t2;
    } else {
        diag_print(&diag, stderr);
    }
    program_free(p);
    diag_release(&diag);
    return rc;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One line a part: the figure of all parts has the aim. */
static int measure(enum shape shape, unsigned n_inputs, int n, struct err *err)
{
    static const char *const names[PART_NR] = {"TOML", "loading", "proofs", "JSON", "all"};
    struct strbuf text = STRBUF_INIT;
    double ms[PART_NR][16];
    int rc = 0;
    write_program(&text, shape, n_inputs);
    for (int i = 0; rc == 0 && i < n; i++) {
        double one[PART_NR] = {0};
        rc = check_once(&text, one, err);
        for (int k = 0; k < PART_NR; k++) {
            ms[k][i] = one[k];
        }
    }
    for (int k = 0; rc == 0 && k + 1 < PART_NR; k++) {
        qsort(ms[k], (size_t)n, sizeof(double), by_value);
        printf("  2^%u rows%s, %.1f MB: %s %.1f ms\n", n_inputs, shape_names[shape],
               (double)text.len / 1e6, names[k], ms[k][n / 2]);
    }
    if (rc == 0) {
        printf("{\"figure\":\"check of 2^%u rows%s\",\"unit\":\"ms of CPU\"%s,\"values\":[",
               n_inputs, shape_names[shape], n_inputs == 16 ? ",\"aim\":1000,\"limit\":10000" : "");
        for (int i = 0; i < n; i++) {
            printf("%s%.3f", i == 0 ? "" : ",", ms[PART_ALL][i]);
        }
        puts("]}");
    }
    strbuf_release(&text);
    return rc;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    const bool is_long = argc > 1 && strcmp(argv[1], "--long") == 0;
    const int n = is_long ? 11 : 3;
    const unsigned least = is_long ? 8 : 12;
    const unsigned most = is_long ? 18 : 16;
    for (enum shape shape = 0; shape < SHAPE_NR; shape++) {
        for (unsigned n_inputs = least; n_inputs <= most; n_inputs += is_long ? 2 : 4) {
            if (measure(shape, n_inputs, n, &err) != 0) {
                fprintf(stderr, "bench_check: 2^%u rows: %s\n", n_inputs, err.msg);
                return EXIT_FAILURE;
            }
        }
    }
    return EXIT_SUCCESS;
}
