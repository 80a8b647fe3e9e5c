/*
 * The parts of a trainer that are not arrays of floats: the step, evaluations so far, router
 * health, who made it. JSON keeps doubles exactly, so a resumed run reads back the same bits; a
 * standard error that is not a number is null.
 */
#include "worker/train/checkpoint/checkpoint.h"

#include <math.h>

#include "base/json/json.h"
#include "base/xalloc.h"

static void put_loss(const struct val_loss *v, cJSON *obj)
{
    json_put_number(obj, "loss", v->loss);
    json_put_number(obj, "se", v->se);
    json_put_int(obj, "n", v->n);
}

static cJSON *put_sources(const struct train_evaluation *e, size_t n)
{
    cJSON *list = json_array();

    for (size_t i = 0; i < n; i++) {
        cJSON *source = json_object();
        put_loss(&e->source[i], source);
        json_push(list, source);
    }
    return list;
}

static cJSON *put_marks(const struct trainer *t)
{
    cJSON *marks = json_array();
    char hex[DIGEST_HEX_SIZE];

    for (size_t i = 0; i < t->opt->n_marks; i++) {
        cJSON *m = json_object();
        json_put_number(m, "at", t->opt->marks[i]);
        put_loss(&t->marks[i].whole, m);
        json_put(m, "sources", put_sources(&t->marks[i], train_options_n_validated(t->opt)));
        if (!digest_is_zero(&t->snapshots[i])) {
            digest_hex(&t->snapshots[i], hex);
            json_put_string(m, "snapshot", hex);
        }
        json_push(marks, m);
    }
    return marks;
}

int checkpoint_state_text(const struct trainer *t, struct strbuf *out, struct err *err)
{
    cJSON *obj = json_object(), *health = json_object(), *best = json_object();

    json_put_int(obj, "step", t->step);
    json_put_int(obj, "target_step", t->target_step);
    json_put_int(obj, "evaluated_step", t->evaluated_step);
    json_put_int(obj, "best_step", t->best_step);
    put_loss(&t->best, best);
    json_put(obj, "best", best);
    json_put(obj, "marks", put_marks(t));
    health_put(&t->health, health);
    json_put(obj, "health", health);
    json_put_string(obj, "made_by", t->made_by);
    strbuf_clear(out);
    int rc = json_line(obj, out, err);
    cJSON_Delete(obj);
    return rc;
}

/* A standard error that could not be taken was written as null. */
static int get_loss(const cJSON *m, struct val_loss *out, struct err *err)
{
    int rc;

    out->se = (double)NAN;
    if ((rc = json_get_number(m, "loss", &out->loss, err)) < 0 ||
        (rc = json_opt_number(m, "se", &out->se, err)) < 0)
        return rc;
    return json_get_int(m, "n", -1, JSON_INT_MAX, &out->n, err);
}

static int get_mark(const cJSON *m, struct trainer *t, size_t mark, struct err *err)
{
    const cJSON *sources = NULL, *s;
    const char *hex = NULL;
    size_t i = 0;

    int rc = get_loss(m, &t->marks[mark].whole, err);
    if (rc == 0)
        rc = json_get_array(m, "sources", &sources, err);
    if (rc == 0 && (size_t)cJSON_GetArraySize(sources) != train_options_n_validated(t->opt))
        rc = err_set(err, ERR_CORRUPT, "marks are of other sources");
    for (s = rc == 0 ? sources->child : NULL; rc == 0 && s != NULL; s = s->next)
        rc = get_loss(s, &t->marks[mark].source[i++], err);
    if (rc == 0)
        rc = json_opt_string(m, "snapshot", &hex, err);
    if (rc == 0 && hex != NULL && t->opt->is_snapshot[mark])
        rc = digest_from_hex(hex, &t->snapshots[mark], err);
    return rc;
}

const cJSON *checkpoint_state_find_mark(const cJSON *marks, double at)
{
    const cJSON *m;

    cJSON_ArrayForEach(m, marks)
    {
        const cJSON *v = json_member(m, "at");
        if (cJSON_IsNumber(v) && v->valuedouble == at)
            return m;
    }
    return NULL;
}

static int read_members(struct trainer *t, const cJSON *obj, struct err *err)
{
    const cJSON *marks = NULL, *health = NULL, *best = NULL;
    const char *made_by = NULL;
    int rc;

    if ((rc = json_get_int(obj, "step", 1, train_options_end(t->opt), &t->step, err)) < 0 ||
        (rc = json_get_int(obj, "target_step", -1, train_options_end(t->opt), &t->target_step,
                           err)) < 0 ||
        (rc = json_get_int(obj, "evaluated_step", -1, train_options_end(t->opt), &t->evaluated_step,
                           err)) < 0 ||
        (rc = json_get_string(obj, "made_by", &made_by, err)) < 0 ||
        (rc = json_get_int(obj, "best_step", -1, train_options_end(t->opt), &t->best_step, err)) <
            0 ||
        (rc = json_get_object(obj, "best", &best, err)) < 0 ||
        (rc = get_loss(best, &t->best, err)) < 0 ||
        (rc = json_get_array(obj, "marks", &marks, err)) < 0 ||
        (rc = json_get_object(obj, "health", &health, err)) < 0)
        return rc;
    /* Those of a continued run need not be this run's. */
    for (size_t i = 0; i < t->opt->n_marks; i++) {
        const cJSON *m = checkpoint_state_find_mark(marks, t->opt->marks[i]);
        rc = m == NULL ? 0 : get_mark(m, t, i, err);
        if (rc < 0)
            return rc;
    }
    free(t->made_by);
    t->made_by = xstrdup(made_by);
    return health_get(&t->health, health, err);
}

int checkpoint_state_read(struct trainer *t, const char *path, struct err *err)
{
    cJSON *obj = NULL;

    int rc = json_read_file(path, CHECKPOINT_STATE_MAX, &obj, err);
    if (rc == 0)
        rc = read_members(t, obj, err);
    cJSON_Delete(obj);
    return rc;
}
