/* How long it takes to verify a receipt of 10,000 records (2,000 results of five metrics each),
 * with --long of 100,000, how that grows, and in how much memory. The program is made up through
 * the store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/files/file.h"
#include "ctl/receipt/export.h"
#include "tests/unit/ctl/receipt/fixture.h"

#define N_REPEATS 5
#define N_EVALS   4
#define N_METRICS 5

static double peak_mib(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (double)u.ru_maxrss / 1024 : -1;
}

/* Of this process: the machine may be shared. */
static double cpu_seconds(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0
               ? (double)t.tv_sec + (double)t.tv_nsec / 1e9
               : -1;
}

static void figure(const char *limits, size_t n_records, const double *values, size_t n)
{
    printf("{\"figure\":\"verify of %zu records, CPU\",\"unit\":\"s\",%s\"values\":[", n_records,
           limits);
    for (size_t i = 0; i < n; i++) {
        printf("%s%.4f", i == 0 ? "" : ",", values[i]);
    }
    puts("]}");
}

static int measure(size_t n_seeds, const char *limits, struct err *err)
{
    const struct fixture f = {.n_seeds = n_seeds, .n_evals = N_EVALS, .n_metrics = N_METRICS};
    struct export_made made = {0};
    char folder[] = "receipt-XXXXXX";
    char *program = NULL;
    double seconds[N_REPEATS];
    if (mkdtemp(folder) == NULL) {
        return err_set(err, ERR_IO, "no scratch folder");
    }
    char *out = path_join(folder, "out");
    int rc = fixture_make(&f, folder, &program, err);
    rc = rc == 0 ? receipt_export(&(struct export_spec){.program_folder = program, .out = out},
                                  &made, err)
                 : rc;
    for (size_t i = 0; rc == 0 && i < N_REPEATS; i++) {
        const struct verify_spec spec = {.folder = made.folder};
        struct verify_answer a;
        double since = cpu_seconds();
        rc = receipt_verify(&spec, &a) == 0 ? 0 : err_join(&a.fault, err);
        seconds[i] = cpu_seconds() - since;
        verify_answer_release(&a);
    }
    if (rc == 0) {
        figure(limits, 2 * n_seeds * N_EVALS * N_METRICS, seconds, N_REPEATS);
    }
    struct err ignored;
    (void)!dir_remove(folder, &ignored);
    export_made_release(&made);
    free(program);
    free(out);
    return rc;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    bool is_long = argc > 1 && strcmp(argv[1], "--long") == 0;
    int rc = measure(25, "", &err);
    rc = rc == 0 ? measure(250, "\"aim\":0.2,\"limit\":5,", &err) : rc;
    rc = rc == 0 && is_long ? measure(750, "", &err) : rc;
    rc = rc == 0 && is_long ? measure(2500, "\"aim\":2,\"limit\":30,", &err) : rc;
    rc = rc == 0 && is_long ? measure(7500, "", &err) : rc;
    if (rc != 0) {
        (void)fprintf(stderr, "bench_receipt: %s\n", err.msg);
        return EXIT_FAILURE;
    }
    printf("peak of making and verifying: %.0f MiB\n", peak_mib());
    return EXIT_SUCCESS;
}
