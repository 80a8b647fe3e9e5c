/* Conditions: whatever is accepted prints to a text that is accepted again and prints the same,
 * evaluates, and its negation evaluates to the opposite. */
#include "base/xalloc.h"
#include "tests/fuzz/truthtable/fuzz_program.h"
#include "truthtable/evaluate/evaluation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct cond *parse(const char *text, const struct plan_program *p, struct rules *rules,
                                struct diag *diag)
{
    struct cond_text t = {.text = text, .place = {.line = 1, .column = 1}};
    return cond_parse(&t, p, COND_USE_INPUT, &rules->facts, diag);
}

static void evaluate(const struct cond *c, const struct plan_program *p, struct rules *rules,
                     int value)
{
    struct evidence e;
    struct coverage coverage;
    struct table_reading reading;
    struct table_evaluation ev;
    const char *why = NULL;
    evidence_init(&e, p);
    for (size_t cell = 0; cell < p->n_cells; cell++) {
        struct evidence_value v = {.state = VALUE_KNOWN,
                                   .value = value / 256.0 + (double)cell / 50};
        evidence_set_task(&e, cell, 0, TASK_END_DONE, NULL);
        evidence_add_metric(&e, cell, 0, "q", &v);
    }
    coverage_init(&coverage, &e, &e.arena);
    reading_of_evidence(&reading, &e, rules, &coverage, &e.arena);
    evaluation_run(&ev, rules, &reading, &e.arena);
    enum truth t = evaluation_truth(&ev, c, TRUTH_UNKNOWN, &why);
    const struct cond *kids[1] = {c};
    struct cond negation = {.kind = COND_NOT, .kids = kids, .n_kids = 1};
    if (evaluation_truth(&ev, &negation, TRUTH_UNKNOWN, &why) != truth_not(t)) {
        abort();
    }
    evidence_release(&e);
}

static void print_again(const struct cond *c, const struct plan_program *p, struct rules *rules,
                        struct diag *diag)
{
    struct strbuf first = STRBUF_INIT;
    struct strbuf second = STRBUF_INIT;
    cond_print(c, p, &rules->facts, &first);
    const struct cond *again = parse(first.buf, p, rules, diag);
    /* The printed form has more parentheses and may pass a limit that the text kept. */
    if (again != NULL) {
        cond_print(again, p, &rules->facts, &second);
        if (strcmp(first.buf, second.buf) != 0) {
            abort();
        }
    } else if (first.len < 200) {
        abort();
    }
    strbuf_release(&first);
    strbuf_release(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct plan_program *p;
    struct rules rules;
    struct diag diag;
    struct err err;
    if (p == NULL) {
        p = fuzz_program();
    }
    diag_init(&diag, "grid.toml");
    if (rules_compile(p, &rules, &diag, &err) != 0) {
        abort();
    }
    char *text = xstrndup((const char *)data, size);
    const struct cond *c = parse(text, p, &rules, &diag);
    if ((c == NULL) != (diag.n_errors > 0)) {
        abort();
    }
    if (c != NULL) {
        evaluate(c, p, &rules, size > 0 ? data[size - 1] : 0);
        print_again(c, p, &rules, &diag);
    }
    free(text);
    rules_release(&rules);
    diag_release(&diag);
    return 0;
}
