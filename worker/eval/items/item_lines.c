/*
 * Cuts a text into records: JSON lines, or comma-separated values under the task's columns or a
 * header line. Each record is handed to item_record.c as a JSON object, so what follows does not
 * know the format. Messages name the line of the file and the number of the item.
 */
#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/eval/items/csv.h"
#include "worker/eval/items/item_private.h"
#include "worker/eval/task/pytext.h"

/* A last line without its line feed that does not read on its own was cut off. */
static int take_line(struct item_reader *r, const char *text, size_t len, bool ended, unsigned line,
                     struct err *err)
{
    cJSON *record = NULL;
    int rc = json_parse(text, len, &record, err);
    if (rc != 0 && !ended)
        return err_set(err, ERR_SYNTAX, "the file ends in the middle of a record; is it whole?");
    return rc != 0 ? rc : item_take_record(r, record, line, err);
}

int item_take_jsonl(struct item_reader *r, const char *text, size_t len, struct err *err)
{
    const size_t before = r->set->n;
    unsigned line = 0;
    for (size_t at = 0; at < len;) {
        const char *start = text + at;
        const char *feed = memchr(start, '\n', len - at);
        const size_t n = feed == NULL ? len - at : (size_t)(feed - start);
        at += n + 1;
        line++;
        if (pytext_lstrip(start, n) == n)
            continue;
        int rc = take_line(r, start, n, feed != NULL, line, err);
        if (rc != 0) {
            err->code = ERR_SYNTAX; /* the data are bad, not the parameters */
            return err_wrap(err, "line %u (item %zu)", line, r->set->n - before + 1);
        }
    }
    return 0;
}

/* The names of the fields: the task's, or the first record's. */
struct line_columns {
    const char *const *names;
    size_t n;
};

/* One CSV record as a JSON object of texts. */
static int take_fields(struct item_reader *r, const struct line_columns *columns,
                       const struct csv_record *fields, unsigned line, struct err *err)
{
    if (fields->n != columns->n)
        return err_set(err, ERR_SYNTAX, "%zu fields, not %zu", fields->n, columns->n);
    cJSON *record = json_object();
    for (size_t i = 0; i < columns->n; i++)
        json_put_string(record, columns->names[i], fields->fields[i]);
    return item_take_record(r, record, line, err);
}

/* The first record names the columns; no name may occur twice. */
static int take_header(struct line_columns *columns, struct arena *arena,
                       const struct csv_record *fields, struct err *err)
{
    const char **names = arena_array(arena, fields->n, sizeof(*names));
    for (size_t i = 0; i < fields->n; i++) {
        names[i] = fields->fields[i];
        for (size_t k = 0; k < i; k++)
            if (strcmp(names[k], names[i]) == 0)
                return err_set(err, ERR_SYNTAX, "two columns are called '%.60s'", names[i]);
    }
    *columns = (struct line_columns){names, fields->n};
    return 0;
}

int item_take_csv(struct item_reader *r, const char *text, size_t len, struct err *err)
{
    const size_t before = r->set->n;
    struct line_columns columns = {r->spec->columns, r->spec->n_columns};
    struct csv_reader reader = {0};
    struct csv_record fields;
    struct arena arena;
    arena_init(&arena);
    int rc = csv_start(&reader, text, len, err);
    bool got = rc == 0;
    while (rc == 0 && got) {
        rc = csv_next(&reader, &arena, &fields, &got, err);
        if (rc != 0 || !got)
            break;
        rc = columns.n == 0 ? take_header(&columns, &arena, &fields, err)
                            : take_fields(r, &columns, &fields, reader.line, err);
        if (rc != 0)
            err_wrap(err, "line %u (item %zu)", reader.line, r->set->n - before + 1);
    }
    arena_release(&arena);
    return rc;
}
