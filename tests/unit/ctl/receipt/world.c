#include "tests/unit/ctl/receipt/world.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/files/file.h"
#include "base/xalloc.h"

int world_make(const struct fixture *f, void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    struct err err = {0};
    w->folder = scratch_make();
    char *out = path_join(w->folder, "out");
    int rc = fixture_make(f, w->folder, &w->program, &err);
    if (rc == 0) {
        rc = receipt_export(&(struct export_spec){.program_folder = w->program, .out = out},
                            &w->made, &err);
    }
    if (rc != 0) {
        print_error("%s\n", err.msg);
    }
    free(out);
    *state = w;
    return rc;
}

int world_drop(void **state)
{
    struct world *w = *state;
    scratch_remove(w->folder);
    export_made_release(&w->made);
    free(w->program);
    free(w);
    return 0;
}
