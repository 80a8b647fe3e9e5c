/* How long the report of 200 cells takes, curves of 400 attempts included: reading, drawing,
 * writing and digests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "tests/unit/truthtable/report/fixture.h"
#include "truthtable/report/report.h"

static int measure(int n, struct err *err)
{
    static const struct fixture program = {.toml = "many.toml", .height = 1};
    int rc = fixture_make(&program, "many", err);
    printf("{\"figure\":\"report of 200 "
           "cells\",\"unit\":\"ms\",\"aim\":500,\"limit\":10000,\"values\":[");
    for (int i = 0; rc == 0 && i < n; i++) {
        int64_t from = clock_mono_ns();
        rc = report_write("many", NULL, err);
        printf("%s%.3f", i == 0 ? "" : ",", (double)(clock_mono_ns() - from) / 1e6);
    }
    puts("]}");
    return rc;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    bool is_long = argc > 1 && strcmp(argv[1], "--long") == 0;
    if (measure(is_long ? 50 : 7, &err) != 0) {
        fprintf(stderr, "bench_report: %s\n", err.msg);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
