/* What prereg-eval asks in a task of CORE, for tests/oracle/test_core.py.
 *
 *   core_requests TASK FOLDER TOKENIZER      a line of digests
 * (tests/unit/worker/eval/prompt/core_digest.h)
 */
#include <stdio.h>

#include "tests/unit/worker/eval/prompt/core_digest.h"

static void print_digest(const char *key, const struct digest *d, const char *end)
{
    char hex[DIGEST_HEX_SIZE];
    digest_hex(d, hex);
    printf("\"%s\":\"%s\"%s", key, hex, end);
}

static int print_task(char **argv, struct err *err)
{
    struct tokenizer *tok = NULL;
    struct core_look look = {.task = argv[1], .folder = argv[2], .depth = CORE_DEPTH_ALL};
    struct core_digests d;
    int rc = tokenizer_open(argv[3], &tok, err);
    look.tok = tok;
    if (rc == 0)
        rc = core_digest(&look, &d, err);
    if (rc == 0) {
        printf("{\"items\":%zu,\"requests\":%zu,\"cut\":%zu,", d.items, d.requests, d.cut);
        print_digest("texts", &d.texts, ",");
        print_digest("ids", &d.ids, ",");
        print_digest("first_texts", &d.first_texts, ",");
        print_digest("first_ids", &d.first_ids, "}\n");
    }
    tokenizer_free(tok);
    return rc;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    if (argc != 4) {
        (void)fprintf(stderr, "usage: core_requests TASK FOLDER TOKENIZER\n");
        return 2;
    }
    if (print_task(argv, &err) != 0) {
        (void)fprintf(stderr, "core_requests: %s\n", err.msg);
        return 1;
    }
    return 0;
}
