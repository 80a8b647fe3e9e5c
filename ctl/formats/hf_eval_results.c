/* hf-eval-results: CELL/.eval_results/MEASURE.yaml, as the Hub shows them on a model's page. A
 * model repository is one model, so each cell has a folder of its own. The Hub knows an evaluation
 * by the dataset that it is of: only the plan can say which (`hub` of [measure]). */
#include <stdlib.h>

#include "ctl/formats/writers.h"

/* One entry of the list. */
static void add_entry(struct strbuf *sb, const struct receipt_source *s,
                      const struct plan_measure *m, size_t cell, const struct evidence_value *v)
{
    struct strbuf notes = STRBUF_INIT;
    const struct source_task *t = source_task(s, cell, m->stage);
    strbuf_adds(sb, "- dataset:\n    id: ");
    yaml_add_string(sb, m->hub.dataset);
    strbuf_adds(sb, "\n    task_id: ");
    yaml_add_string(sb, m->hub.task);
    if (m->hub.revision != NULL) {
        strbuf_adds(sb, "\n    revision: ");
        yaml_add_string(sb, m->hub.revision);
    }
    strbuf_adds(sb, "\n  value: ");
    yaml_add_number(sb, v->value);
    if (t->ended.ms != 0) {
        char time[WALL_TEXT_SIZE];
        clock_wall_text(t->ended, time);
        strbuf_adds(sb, "\n  date: ");
        yaml_add_string(sb, time);
    }
    strbuf_addf(&notes, "%s of %s", m->metric_text, s->program->cells[cell].name);
    if (v->has_n) {
        strbuf_addf(&notes, ", %lld items", (long long)v->n);
    }
    if (v->has_se) {
        strbuf_addf(&notes, ", standard error %.6g", v->se);
    }
    strbuf_addf(&notes, "; planned in advance: preregd %s, lock %s%s", s->program->name,
                s->lock->root, s->imported ? ", imported records" : "");
    strbuf_adds(sb, "\n  notes: ");
    yaml_add_string(sb, notes.buf);
    strbuf_addc(sb, '\n');
    strbuf_release(&notes);
}

/* A measure of one cell; *n counts the files. */
static int put_measure(const struct receipt_source *s, const struct format_output *out,
                       const struct plan_measure *m, size_t cell, size_t *n, struct err *err)
{
    const struct evidence_value v = source_metric(s, cell, m->stage, m->metric);
    struct strbuf sb = STRBUF_INIT;
    struct strbuf name = STRBUF_INIT;
    int rc = 0;
    if (v.state != VALUE_KNOWN) {
        format_note(out, "%s has no value in some cells: left out there", m->name);
        return 0;
    }
    char *folder = format_cell_name(s->program->cells[cell].name);
    strbuf_addf(&name, "%s/.eval_results/%s.yaml", folder, m->name);
    add_entry(&sb, s, m, cell, &v);
    rc = format_put(out, name.buf, &sb, err);
    ++*n;
    free(folder);
    strbuf_release(&name);
    strbuf_release(&sb);
    return rc;
}

int write_hf_eval_results(const struct receipt_source *s, const struct format_output *out,
                          struct err *err)
{
    const struct plan_program *p = s->program;
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->n_measures; i++) {
        if (p->measures[i].hub.dataset == NULL) {
            format_note(out, "%s: the plan names no dataset of the Hub: left out",
                        p->measures[i].name);
            continue;
        }
        for (size_t c = 0; rc == 0 && c < p->n_cells; c++) {
            rc = put_measure(s, out, &p->measures[i], c, &n, err);
        }
    }
    if (rc == 0 && n == 0) {
        return err_set(err, ERR_REFUSED,
                       "no measure with a value names its dataset of the Hub, and none is guessed: "
                       "[measure] has `hub = { dataset = \"ORG/NAME\", task = \"ID\" }` for it");
    }
    return rc;
}
