/* prereg-report PROGRAM_FOLDER [--out DIR | --csv DIR]: writes the report, or its tables as CSV, of
 * a program that has its verdict. The daemon runs it as a process of its own after the verdict, so
 * that a fault in the report cannot take the daemon down; users run it to write a report again
 * elsewhere. */
#include <stdio.h>
#include <string.h>

#include "base/machine/proc.h"
#include "truthtable/report/report.h"
#include "truthtable/report/report_csv.h"

/* Prints the usage; returns the exit code for it. */
static int usage(void)
{
    fputs("usage: prereg-report PROGRAM_FOLDER [--out DIR | --csv DIR]\n"
          "Writes report.html, report.md, report.json and SHA256SUMS from the verdict, the lock "
          "and the\n"
          "cells of a program's folder (STATE/programs/<name>-<digest>), into its report/ or into "
          "DIR. With --csv it writes means.csv and records.csv into DIR instead.\n",
          stderr);
    return EXIT_USAGE;
}

/* Any argument that is none of the above is a usage error. */
int main(int argc, char **argv)
{
    proc_mend_inherited();
    const char *folder = NULL;
    const char *out = NULL;
    const char *csv = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--out") == 0 && i + 1 < argc) {
            out = argv[++i];
        } else if (strcmp(argv[i], "--csv") == 0 && i + 1 < argc) {
            csv = argv[++i];
        } else if (argv[i][0] != '-' && folder == NULL) {
            folder = argv[i];
        } else {
            return usage();
        }
    }
    if (folder == NULL || (out != NULL && csv != NULL)) {
        return usage();
    }
    struct err err = {0};
    const int rc =
        csv != NULL ? report_write_csv(folder, csv, &err) : report_write(folder, out, &err);
    if (rc != 0) {
        fprintf(stderr, "prereg-report: %s\n", err.msg);
        return (int)err_exit_code(err.code);
    }
    return EXIT_OK;
}
