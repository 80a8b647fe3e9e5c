/* Items of the shipped tasks, for tests. Failures fail the test. */
#ifndef TESTS_UNIT_WORKER_EVAL_PROMPT_SHIPPED_H
#define TESTS_UNIT_WORKER_EVAL_PROMPT_SHIPPED_H

#include "worker/eval/prompt/prompt.h"

/* Kept until the program ends. */
const struct task_spec *shipped_spec(const char *task);
/* Under the rules of v0.4.3; `set` is to be released in any case. */
int shipped_read(struct item_set *set, const char *task, const char *path, const char *split,
                 struct err *err) MUST_CHECK;
void shipped_load(struct item_set *set, const char *task, const char *path, const char *split);
/* Draws examples under the rules of v0.4.3. */
int shipped_draw(struct prompts *p, const struct item_set *set, const struct item_set *pool,
                 int shots, struct err *err) MUST_CHECK;
/* What stands before the item's context. */
void shipped_preamble(const struct prompts *p, size_t item, struct strbuf *out);

#endif
