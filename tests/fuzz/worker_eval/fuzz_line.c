/* Lines of items.jsonl from an earlier attempt: a line that is believed is, byte for byte, the line
 * that would be written. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/eval/score/judge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An item of each kind that a line may be about. */
static const struct {
    const char *task;
    const char *record;
    const char *group; /* "" for a task without groups */
} cases[] = {
    {"choices", "{\"query\":\"q\",\"choices\":[\"a\",\"bb\",\"c\"],\"gold\":0}", ""},
    {"choices", "{\"query\":\"q\",\"choices\":[\"a\",\"bb\",\"c\"],\"gold\":0}", "a/b"},
    {"gsm8k", "{\"question\":\"q\",\"answer\":\"#### 2\"}", ""},
    {"lambada_openai", "{\"text\":\"a b\"}", ""},
    {"wikitext", "{\"page\":\"a b\"}", ""},
};

#define N_CASES (sizeof(cases) / sizeof(cases[0]))

static struct item_set sets[N_CASES];
static struct judge judges[N_CASES];

static void make_judges(void)
{
    for (size_t i = 0; i < N_CASES; i++) {
        struct err err = {0};
        struct task_spec *spec = NULL;
        item_set_init(&sets[i]);
        if (task_builtin_read(cases[i].task, &spec, &err) != 0 ||
            item_set_parse_jsonl(&sets[i], spec, cases[i].record, strlen(cases[i].record), &err) !=
                0)
            abort();
        sets[i].groups[0].name = cases[i].group;
        if (judge_init(&judges[i], &sets[i], NULL, &err) != 0)
            abort();
    }
}

static void check(const struct judge *j, const char *line, size_t len)
{
    struct item_outcome o;
    outcome_init(&o);
    if (outcome_read_line(&o, j, 0, line, len)) {
        struct strbuf again = STRBUF_INIT;
        outcome_add_line(&o, j, 0, &again);
        if (again.len != len + 1 || memcmp(again.buf, line, len) != 0)
            abort();
        strbuf_release(&again);
    }
    outcome_release(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (judges[0].set == NULL)
        make_judges();
    for (size_t i = 0; i < N_CASES; i++)
        check(&judges[i], (const char *)data, size);
    return 0;
}
