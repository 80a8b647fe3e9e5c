/* What is sent to the model about an item, for people and, as JSON, for programs. */
#ifndef WORKER_EVAL_CLI_ITEM_PRINTER_H
#define WORKER_EVAL_CLI_ITEM_PRINTER_H

#include "worker/eval/score/benchmark.h"
#include "worker/eval/score/scorer.h"

/* Borrows what it points to, besides `text` and `requests`, which its owner releases. */
struct item_printer {
    const struct benchmark *bench;
    const struct tokenizer *tok; /* NULL: texts alone */
    struct scorer *scorer;       /* with the tokenizer in its rules */
    struct request_text text;
    struct request_list requests;
};

/* Appends the index-th item. An item that cannot be asked is shown with the reason. */
int item_print(struct item_printer *s, size_t index, bool json, struct strbuf *out,
               struct err *err) MUST_CHECK;

#endif
