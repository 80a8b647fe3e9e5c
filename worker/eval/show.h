/* What is sent to the model about an item, for people and, as JSON, for programs. */
#ifndef WORKER_EVAL_SHOW_H
#define WORKER_EVAL_SHOW_H

#include "worker/eval/benchmark.h"
#include "worker/eval/scorer.h"

/* Borrows what it points to, besides `text` and `requests`, which its owner releases. */
struct show {
    const struct benchmark *bench;
    const struct tokenizer *tok; /* NULL: texts alone */
    struct scorer *scorer;       /* with the tokenizer in its rules */
    struct request_text text;
    struct request_list requests;
};

/* Appends the index-th item. An item that cannot be asked is shown with the reason. */
int show_item(struct show *s, size_t index, bool json, struct strbuf *out,
              struct err *err) MUST_CHECK;

#endif
