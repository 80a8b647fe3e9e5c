/* Any text as the instruments and forecasts of a program: refused with a diagnostic, or computed
 * over made-up evidence without a number that JSON cannot hold. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/load/program_load.h"
#include "truthtable/evaluate/verdict_file.h"
#include "truthtable/instruments/instruments.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char HEAD[] =
    "[program]\nname = \"p\"\nschema = 1\n"
    "[[factor]]\nname = \"arch\"\nlevels = [\"dense\", \"moe\"]\n"
    "[[factor]]\nname = \"lr\"\nlevels = [1, 2]\n"
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2, 3]\nreplicate = true\n"
    "[stage.train]\ncommand = [\"./w\"]\n[stage.score]\ncommand = [\"./w\"]\n"
    "[measure]\nacc = { metric = \"score.acc\", items = 100, chance = 0.25, floor = 0.3 }\n"
    "loss = { metric = \"train.loss\", better = \"lower\", counted = false }\n"
    "[contrast]\narch = { between = { arch = [\"moe\", \"dense\"] } }\n"
    "lr = { between = { lr = [1, 2] } }\n"
    "[counter]\nk = { contrast = \"arch\", clears = \"every_cell\", binds = true }\n"
    "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"counter.k == 1\"], [\"b\", \"otherwise\"]]\n"
    "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"
    "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n";

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void fill(struct evidence *e, const struct plan_program *p)
{
    for (size_t c = 0; c < p->n_cells; c++) {
        struct evidence_value acc = {.state = VALUE_KNOWN, .value = 0.2 + 0.01 * (double)c};
        struct evidence_value loss = {.state = VALUE_KNOWN, .value = 2 + 0.1 * (double)(c % 5)};
        struct evidence_value load = {.state = c < 6 ? VALUE_NULL : VALUE_KNOWN,
                                      .value = (double)(c % 3)};
        evidence_set_task(e, c, 0, TASK_END_DONE, NULL);
        evidence_set_task(e, c, 1, c == 11 ? TASK_END_NEVER_RUN : TASK_END_DONE, "dependency");
        evidence_add_metric(e, c, 1, "acc", &acc);
        evidence_add_metric(e, c, 0, "loss", &loss);
        evidence_add_fact(e, c, 0, "router_load", &load);
    }
}

static void compute(const struct plan_program *p)
{
    struct evidence e;
    struct table_verdict v;
    struct lock lock = {0};
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    cJSON *back = NULL;
    evidence_init(&e, p);
    fill(&e, p);
    if (verdict_compute(&e, lock.root, lock.head, &v, &err) == 0) {
        const struct instruments_input in = {
            .folder = "/nonexistent", .program = p, .lock = &lock, .verdict = verdict_json(&v)};
        cJSON *told = instruments_of_evidence(&in, &e);
        must(json_line(told, &text, &err) == 0);
        must(json_parse(text.buf, text.len, &back, &err) == 0);
        must(cJSON_GetArraySize(json_member(told, "instruments")) ==
             (int)p->n_instruments + 3 + (p->n_apparatus > 0));
        cJSON_Delete(back);
        cJSON_Delete(told);
    }
    strbuf_release(&text);
    verdict_release(&v);
    evidence_release(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan_program *p = NULL;
    struct diag diag;
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    strbuf_adds(&text, HEAD);
    strbuf_add(&text, data, size);
    diag_init(&diag, "grid.toml");
    if (program_parse(text.buf, text.len, "/grid.toml", &p, &diag, &err) == 0 && p->n_cells <= 64) {
        compute(p);
    }
    program_free(p);
    diag_release(&diag);
    strbuf_release(&text);
    return 0;
}
