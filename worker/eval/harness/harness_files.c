/*
 * Reads items.jsonl once into memory, then writes one samples file per task by going over its
 * lines; each line must be the one that follows from the answer in it (outcome_read_line()), so a
 * file that was edited is never exported. Hashes of the samples go into the results file, which is
 * written last and atomically: a folder with a results file is complete.
 */
#include "worker/eval/harness/harness_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "worker/eval/harness/harness_names.h"
#include "worker/eval/harness/harness_sample.h"
#include "worker/eval/score/items_file.h"

/* items.jsonl: where each asked item's line begins, in their order. */
struct lines {
    struct strbuf text;
    const char **at; /* n + 1 of them: the last is the end */
    size_t n;
};

static void lines_release(struct lines *l)
{
    strbuf_release(&l->text);
    free(l->at);
}

/* The file must have exactly a header and one line for each of the n items asked. */
static int lines_read(struct lines *l, const char *path, size_t n, struct err *err)
{
    *l = (struct lines){.text = STRBUF_INIT, .at = xcalloc(n + 1, sizeof(*l->at)), .n = n};
    int rc = file_read(path, LAYOUT_ITEMS_MAX, &l->text, err);
    if (rc != 0)
        return rc;
    const char *end = l->text.buf + l->text.len;
    const char *at = memchr(l->text.buf, '\n', l->text.len); /* the header's end */
    for (size_t i = 0; i <= n && at != NULL; i++) {
        l->at[i] = at + 1;
        at = i == n ? at : memchr(at + 1, '\n', (size_t)(end - at - 1));
    }
    if (at == NULL || l->at[n] != end)
        return err_set(err, ERR_CORRUPT, "%s: not the lines of %zu items", path, n);
    return 0;
}

/* One pass over the items of a group under one filter. */
static int write_pass(const struct harness_files *f, const struct harness_row *row,
                      const struct task_filter *filter, const struct lines *lines,
                      struct file_writer *w, struct digest_stream *task, struct err *err)
{
    const struct benchmark *b = f->bench;
    struct item_outcome o;
    int rc = 0;
    outcome_init(&o);
    for (size_t i = 0; rc == 0 && i < b->n_selected; i++) {
        const size_t item = b->selected[i];
        if (b->set.items[item].group != row->group)
            continue;
        const size_t len = (size_t)(lines->at[i + 1] - lines->at[i]) - 1;
        if (!outcome_read_line(&o, f->judge, item, lines->at[i], len)) {
            rc = err_set(err, ERR_CORRUPT, "%s: line %zu does not follow from the answer in it",
                         f->items, i + 2);
        } else if (o.fault[0] == '\0') {
            const struct harness_sample sample = {
                .prompts = &b->prompts,
                .item = item,
                .outcome = &o,
                .filter = filter,
                .max_tokens = harness_max_tokens(f->results.options, row->spec)};
            rc = harness_sample_add(&sample, &w->pending, task, err);
            if (rc == 0)
                rc = file_writer_add(w, NULL, 0, err);
        }
    }
    outcome_release(&o);
    return rc;
}

/* One task's file; with filters, one pass over its items for each. */
static int write_samples(const struct harness_files *f, const struct harness_row *row,
                         const struct lines *lines, char hash[DIGEST_HEX_SIZE], struct err *err)
{
    char *path = xasprintf("%s/samples_%s%s.jsonl", f->folder, row->name, f->stamp);
    struct digest_stream task;
    struct file_writer w;
    digest_start(&task);
    int rc = file_writer_open(&w, path, 0644, err);
    if (rc == 0 && row->spec->n_filters == 0)
        rc = write_pass(f, row, NULL, lines, &w, &task, err);
    for (size_t i = 0; rc == 0 && i < row->spec->n_filters; i++)
        rc = write_pass(f, row, &row->spec->filters[i], lines, &w, &task, err);
    if (rc == 0)
        rc = file_writer_publish(&w, err);
    file_writer_release(&w);
    free(path);
    const struct digest d = digest_finish(&task);
    digest_hex(&d, hash);
    return rc;
}

/* The samples of every task, and their hashes. */
static int write_all_samples(const struct harness_files *f, char (*hashes)[DIGEST_HEX_SIZE],
                             struct err *err)
{
    const struct harness_tree *tree = f->results.tree;
    struct lines lines;
    int rc = lines_read(&lines, f->items, f->bench->n_selected, err);
    for (size_t i = 0; rc == 0 && i < tree->n; i++) {
        if (!harness_row_is_group(&tree->rows[i]))
            rc = write_samples(f, &tree->rows[i], &lines, hashes[i], err);
    }
    lines_release(&lines);
    return rc;
}

static int write_results(const struct harness_files *f, struct err *err)
{
    char *path = xasprintf("%s/results%s.json", f->folder, f->stamp);
    struct strbuf text = STRBUF_INIT;
    harness_results_add(&f->results, &text);
    int rc = file_write_atomic(path, text.buf, text.len, 0644, err);
    strbuf_release(&text);
    free(path);
    return rc;
}

int harness_files_write(struct harness_files *f, const char **missing, struct err *err)
{
    struct harness_tree tree;
    int rc = 0;
    harness_tree_init(&tree, f->bench, f->results.options->spec->name);
    char(*hashes)[DIGEST_HEX_SIZE] = xcalloc(tree.n, sizeof(*hashes));
    f->results.tree = &tree;
    f->results.bench = f->bench;
    f->results.hashes = f->samples ? hashes : NULL;
    *missing = harness_results_missing(&f->results);
    if (*missing == NULL && f->samples)
        rc = write_all_samples(f, hashes, err);
    if (*missing == NULL && rc == 0)
        rc = write_results(f, err);
    free(hashes);
    harness_tree_release(&tree);
    return rc;
}
