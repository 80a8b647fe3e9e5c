/* MMLU as its authors publish it: <folder>/<split>/<subject>_<split>.csv, no header line. */
#include "base/file.h"
#include "base/xalloc.h"
#include "worker/eval/csv.h"
#include "worker/eval/item.h"
#include "worker/eval/pytext.h"

static const char *const letters[] = {"A", "B", "C", "D"};

#define N_LETTERS ARRAY_LEN(letters)
#define N_FIELDS  (N_LETTERS + 2)

static int take_record(struct item_set *set, const struct csv_record *rec, unsigned line,
                       struct err *err)
{
    if (rec->n != N_FIELDS)
        return err_set(err, ERR_SYNTAX, "%zu fields, not %zu", rec->n, N_FIELDS);
    const char *letter = rec->fields[N_FIELDS - 1];
    if (strlen(letter) != 1 || letter[0] < 'A' || letter[0] > 'D')
        return err_set(err, ERR_SYNTAX, "the answer is '%s', not A to D", letter);
    const char *question = rec->fields[0];
    question += pytext_lstrip(question, strlen(question));
    struct item *it = item_set_add(set);
    it->form = FORM_MMLU;
    it->line = line;
    it->context = arena_printf(&set->arena, "%.*s\nA. %s\nB. %s\nC. %s\nD. %s\nAnswer:",
                               (int)pytext_rstrip(question, strlen(question)), question,
                               rec->fields[1], rec->fields[2], rec->fields[3], rec->fields[4]);
    it->options = letters;
    it->n_options = N_LETTERS;
    it->gold = (size_t)(letter[0] - 'A');
    return 0;
}

static int read_subject(struct item_set *set, const char *path, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct csv_reader reader = {0};
    int rc = file_read(path, ITEM_FILE_MAX, &text, err);
    if (rc == 0)
        rc = csv_start(&reader, text.buf, text.len, err);
    bool got = rc == 0;
    while (rc == 0 && got) {
        struct csv_record record;
        rc = csv_next(&reader, &set->arena, &record, &got, err);
        if (rc == 0 && got && (rc = take_record(set, &record, reader.line, err)) != 0)
            err_wrap(err, "line %u", reader.line);
    }
    strbuf_release(&text);
    return rc == 0 ? 0 : err_wrap(err, "%s", path);
}

/* "The following are multiple choice questions (with answers) about college biology.\n\n": of the
 * two line feeds the harness loses one in v0.4.2 and v0.4.3. */
static void end_subject(struct item_set *set, const char *subject, size_t len, int newlines)
{
    char *words = xstrndup(subject, len);
    for (char *c = words; *c != '\0'; c++)
        if (*c == '_')
            *c = ' ';
    char *description =
        xasprintf("The following are multiple choice questions (with answers) about %s.%s", words,
                  newlines == 1 ? "\n" : "\n\n");
    item_set_end_group(set, description);
    free(description);
    free(words);
}

int item_set_read_mmlu(struct item_set *set, const char *folder, const char *split,
                       int description_newlines, struct err *err)
{
    char *path = path_join(folder, split);
    char *suffix = xasprintf("_%s.csv", split);
    const size_t n_suffix = strlen(suffix);
    struct name_list names = {0};
    size_t n_subjects = 0;
    int rc = dir_list(path, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        size_t len = strlen(names.names[i]);
        if (len <= n_suffix || strcmp(names.names[i] + len - n_suffix, suffix) != 0)
            continue;
        char *file = path_join(path, names.names[i]);
        rc = read_subject(set, file, err);
        free(file);
        end_subject(set, names.names[i], len - n_suffix, description_newlines);
        n_subjects++;
    }
    if (rc == 0 && n_subjects == 0)
        rc = err_set(err, ERR_NOT_FOUND, "%s: no *%s in it", path, suffix);
    name_list_release(&names);
    free(suffix);
    free(path);
    return rc;
}
