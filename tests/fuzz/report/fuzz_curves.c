/* Any bytes as the events of an attempt: curves come out with strictly increasing steps and finite
 * values, or not at all. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "truthtable/report/report_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_curves(const struct curve_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct curve *c = &set->curves[i];
        assert(c->n > 0 && c->cell == 3 && c->stage == 1);
        for (size_t k = 0; k < c->n; k++) {
            assert(isfinite(c->xs[k]) && isfinite(c->ys[k]));
            assert(k == 0 || c->xs[k] > c->xs[k - 1]);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char folder[] = "/tmp/preregd-fuzz-curves-XXXXXX";
    static char *attempt;
    static char *events;
    struct err err = {0};
    if (attempt == NULL) {
        assert(mkdtemp(folder) != NULL);
        attempt = path_join(folder, "attempt-0001-x");
        events = path_join(attempt, "events.jsonl");
        assert(dir_make(attempt, 0700, &err) == 0);
    }
    FILE *f = fopen(events, "wb");
    assert(f != NULL);
    assert(fwrite(data, 1, size, f) == size && fclose(f) == 0);
    struct arena arena;
    struct curve_set set = {0};
    arena_init(&arena);
    curves_read_task(&set, &arena, folder, 3, 1);
    check_curves(&set);
    curves_release(&set);
    arena_release(&arena);
    return 0;
}
