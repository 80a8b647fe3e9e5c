/*
 * eval_requests FOLDER TOKENIZER CONTEXT: the requests of the evaluation task in FOLDER/task.json
 * on standard output, one JSON object a line: item, group, context, continuation, tokens as they go
 * in, how many of them come first and are not scored, how many were cut; of a rolling text
 * "windows", [tokens, how many are scored].
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "tests/oracle/requests.h"

static void add_tokens(struct strbuf *out, const struct request *r)
{
    strbuf_addc(out, '[');
    for (size_t i = 0; i < r->tokens.n; i++)
        strbuf_addf(out, "%s%u", i > 0 ? "," : "", r->tokens.ids[i]);
    strbuf_addc(out, ']');
}

static void add_windows(struct strbuf *out, const struct asked *one)
{
    strbuf_adds(out, ",\"windows\":[");
    for (size_t i = 0; i < one->n; i++) {
        strbuf_adds(out, i > 0 ? ",[" : "[");
        add_tokens(out, &one->requests[i]);
        strbuf_addf(out, ",%zu]", one->requests[i].tokens.n - one->requests[i].first);
    }
    strbuf_addc(out, ']');
}

static void print_line(void *self, const struct asked *one)
{
    const struct asker *a = self;
    struct strbuf line = STRBUF_INIT;
    strbuf_addf(&line, "{\"item\":%zu,\"group\":", one->item);
    json_add_string(&line, one->group);
    strbuf_adds(&line, ",\"context\":");
    json_add_string(&line, one->context);
    strbuf_adds(&line, ",\"continuation\":");
    json_add_string(&line, one->continuation);
    if (a->bench.set.items[one->item].kind == TASK_ROLLING) {
        add_windows(&line, one);
    } else {
        strbuf_adds(&line, ",\"tokens\":");
        add_tokens(&line, one->requests);
        strbuf_addf(&line, ",\"first\":%zu,\"cut\":%zu", one->requests->first,
                    one->requests->n_cut);
    }
    strbuf_adds(&line, "}\n");
    (void)fwrite(line.buf, 1, line.len, stdout);
    strbuf_release(&line);
}

int main(int argc, char **argv)
{
    struct asker a = {0};
    struct tokenizer *tok = NULL;
    struct err err = {0};
    cJSON *task = NULL;

    if (argc != 4)
        return 2;
    char *path = path_join(argv[1], "task.json");
    int rc = json_read_file(path, LAYOUT_TASK_MAX, &task, &err);
    if (rc == 0)
        rc = tokenizer_open(argv[2], &tok, &err);
    if (rc == 0)
        rc = asker_open(&a, task, tok, strtoul(argv[3], NULL, 10), &err);
    if (rc == 0)
        rc = asker_walk(&a, print_line, &a, &err);
    if (fflush(stdout) != 0 && rc == 0)
        rc = err_set(&err, ERR_IO, "standard output");
    if (rc != 0)
        (void)fprintf(stderr, "eval_requests: %s\n", err.msg);
    asker_release(&a);
    tokenizer_free(tok);
    free(path);
    return rc != 0;
}
