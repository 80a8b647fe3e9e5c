/* Answers of Slurm's commands of any bytes: rows stay within what their header promises, the same
 * text gives the same rows, and no line is lost: each is a row, foreign, odd, empty or a cluster's
 * head. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "daemon/executor/slurm/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rows(const struct slurm_rows *r, size_t n_lines)
{
    if (r->n + r->n_foreign + r->n_odd > n_lines) {
        abort();
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct slurm_row *row = &r->rows[i];
        if (!uuid_is_valid(row->name) || row->state >= SLURM_STATE_NR || row->submit_s < -1 ||
            !text_is_plain(row->id) || !text_is_plain(row->word) || !text_is_plain(row->reason) ||
            !text_is_plain(row->node) ||
            (row->index != SLURM_INDEX_NONE && row->index > 100000000)) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct arena arena;
    struct slurm_rows rows;
    int64_t id = 0;
    char why[64];
    size_t n_lines = 1;
    for (size_t i = 0; i < size; i++) {
        n_lines += text[i] == '\n';
    }
    arena_init(&arena);
    slurm_parse_queue(text, size, &arena, &rows);
    check_rows(&rows, n_lines);
    slurm_parse_accounting(text, size, &arena, &rows);
    check_rows(&rows, n_lines);
    arena_release(&arena);
    if (slurm_parse_submitted(text, size, &id) && id <= 0) {
        abort();
    }
    slurm_parse_why(text, size, why, sizeof(why));
    if (!text_is_plain(why)) {
        abort();
    }
    (void)slurm_parse_refusal(text, size);
    int64_t max = slurm_parse_max_array(text, size);
    if (max == 0 || max < -1) {
        abort();
    }
    return 0;
}
