/* Any text is either refused with a diagnostic or becomes a program that keeps its invariants. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "prereg/load/program_load.h"
#include "prereg/program/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void check_program(const struct plan_program *p)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    must(p->n_cells > 0 && p->n_cells <= PROGRAM_CELLS_MAX && p->n_stages > 0);
    must(program_canonical(p, &text, &err) == 0);
    strbuf_release(&text);
    for (size_t i = 0; i < p->n_stages; i++) {
        for (size_t k = 0; k < p->stages[i].n_after; k++) {
            must(p->stages[i].after[k] < i);
        }
    }
    for (size_t i = 0; i < p->n_rows; i++) {
        must(p->rows[i].outcome < p->n_outcomes);
    }
    for (size_t c = 0; c < p->n_cells && c < 16; c++) {
        must(program_find_cell(p, p->cells[c].name) == c);
        must(strchr(p->cells[c].folder, '/') == NULL && strlen(p->cells[c].folder) <= 200);
        cJSON_Delete(program_task_params(p, 0, c));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan_program *p = NULL;
    struct diag diag;
    struct err err = {0};
    diag_init(&diag, "grid.toml");
    int rc = program_parse((const char *)data, size, "/grid.toml", &p, &diag, &err);
    must((rc == 0) == (p != NULL) && (rc == 0) == (diag.n_errors == 0));
    if (p != NULL) {
        check_program(p);
    }
    program_free(p);
    diag_release(&diag);
    return 0;
}
