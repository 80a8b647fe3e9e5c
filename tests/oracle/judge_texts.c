/*
 * judge_texts FOLDER: what the task in FOLDER/task.json makes of generated texts. Line n of
 * standard input is a JSON string, the text generated about item n; line n of standard output is
 * what items.jsonl would have.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "tests/oracle/requests.h"

static int judge_line(const struct asker *a, size_t item, const char *line, size_t len,
                      struct err *err)
{
    struct strbuf out = STRBUF_INIT;
    struct item_outcome o;
    cJSON *text = NULL;
    int rc = json_parse(line, len, &text, err);
    if (rc == 0 && (!cJSON_IsString(text) || item >= a->bench.set.n))
        rc = err_set(err, ERR_SYNTAX, "line %zu: not the text of an item", item + 1);
    if (rc == 0) {
        outcome_init(&o);
        strbuf_adds(&o.text, cJSON_GetStringValue(text));
        judge_item(&a->judge, item, &o);
        outcome_add_line(&o, &a->judge, item, &out);
        (void)fwrite(out.buf, 1, out.len, stdout);
        outcome_release(&o);
    }
    strbuf_release(&out);
    cJSON_Delete(text);
    return rc;
}

static int judge_all(const struct asker *a, struct err *err)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    int rc = 0;
    for (size_t i = 0; rc == 0 && (len = getline(&line, &cap, stdin)) > 0; i++)
        rc = judge_line(a, i, line, (size_t)len, err);
    free(line);
    if (rc == 0 && (ferror(stdin) != 0 || fflush(stdout) != 0))
        rc = err_set(err, ERR_IO, "standard input or output");
    return rc;
}

int main(int argc, char **argv)
{
    struct asker a = {0};
    struct err err = {0};
    cJSON *task = NULL;

    if (argc != 2)
        return 2;
    char *path = path_join(argv[1], "task.json");
    int rc = json_read_file(path, LAYOUT_TASK_MAX, &task, &err);
    if (rc == 0)
        rc = asker_open(&a, task, NULL, 1024, &err);
    if (rc == 0)
        rc = judge_all(&a, &err);
    if (rc != 0)
        (void)fprintf(stderr, "judge_texts: %s\n", err.msg);
    asker_release(&a);
    free(path);
    return rc != 0;
}
