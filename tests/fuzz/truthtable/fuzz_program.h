/* The program that the fuzzers of truthtable/ read their input against: every kind of name exists.
 */
#ifndef TESTS_FUZZ_TRUTHTABLE_FUZZ_PROGRAM_H
#define TESTS_FUZZ_TRUTHTABLE_FUZZ_PROGRAM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prereg/load/program_load.h"
#include "prereg/program/program.h"

static const char fuzz_toml[] =
    "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"
    "[[factor]]\nname = \"arch\"\nlevels = [\"x\", \"it's\"]\n"
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2]\nreplicate = true\n"
    "[stage.train]\ncommand = [\"w\"]\nparams = { a = \"$arch\", s = \"$seed\" }\n"
    "[measure]\nq = { metric = \"train.q\", items = 100, chance = 0.25, floor = 0.3 }\n"
    "[contrast]\nc = { between = { arch = [\"x\", \"it's\"] }, over = \"cleared\" }\n"
    "[counter]\nk = { contrast = \"c\", clears = \"every_cell\", binds = true }\n"
    "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"counter.k == 1\"], [\"b\", \"otherwise\"]]\n"
    "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"O1\"], [\"b\", \"O2\"]]\n"
    "[outcome]\nO1 = { prior = 0.5, title = \"one\" }\nO2 = { prior = 0.4, title = \"two\" }\n"
    "[instrument.bayes]\ncontrast = \"c\"\npriors = { s = 0.01, w = 0.02 }\n";

static inline struct plan_program *fuzz_program(void)
{
    struct plan_program *p = NULL;
    struct diag diag;
    struct err err;
    diag_init(&diag, "grid.toml");
    if (program_parse(fuzz_toml, strlen(fuzz_toml), "grid.toml", &p, &diag, &err) != 0) {
        diag_print(&diag, stderr);
        abort();
    }
    diag_release(&diag);
    return p;
}

#endif
