#include "tests/unit/worker/eval/prompt/shipped.h"

#include "tests/unit/check.h"

#define SPEC_MAX 32

const struct task_spec *shipped_spec(const char *task)
{
    static struct task_spec *known[SPEC_MAX];
    static size_t n_known;
    struct err err = {0};
    for (size_t i = 0; i < n_known; i++)
        if (strcmp(known[i]->name, task) == 0)
            return known[i];
    assert_true(n_known < SPEC_MAX);
    if (task_builtin_read(task, &known[n_known], &err) != 0)
        fail_msg("%s", err.msg);
    return known[n_known++];
}

int shipped_read(struct item_set *set, const char *task, const char *path, const char *split,
                 struct err *err)
{
    const struct item_source src = {
        .path = path, .split = split, .drops_last_newline = true, .may_lack_groups = true};
    item_set_init(set);
    return item_set_read(set, shipped_spec(task), &src, err);
}

void shipped_load(struct item_set *set, const char *task, const char *path, const char *split)
{
    struct err err = {0};
    if (shipped_read(set, task, path, split, &err) != 0)
        fail_msg("%s", err.msg);
}

int shipped_draw(struct prompts *p, const struct item_set *set, const struct item_set *pool,
                 int shots, struct err *err)
{
    const struct prompt_rules rules = {.shots = shots};
    return prompts_init(p, set, pool, &rules, err);
}

void shipped_preamble(const struct prompts *p, size_t item, struct strbuf *out)
{
    struct request_text text;
    request_text_init(&text);
    prompt_request(p, item, 0, &text);
    strbuf_clear(out);
    strbuf_add(out, text.preamble.buf, text.preamble.len);
    request_text_release(&text);
}
