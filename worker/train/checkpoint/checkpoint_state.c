/*
 * The parts of a trainer that are not arrays of floats: the step, evaluations so far, router
 * health, who made it. JSON keeps doubles exactly, so a resumed run reads back the same bits; a
 * standard error that is not a number is null.
 */
#include "worker/train/checkpoint/checkpoint.h"

#include <math.h>

#include "base/json/json.h"
#include "base/xalloc.h"

static cJSON *put_marks(const struct trainer *t)
{
    cJSON *marks = json_array();

    for (size_t i = 0; i < t->opt->n_marks; i++) {
        cJSON *m = json_object();
        json_put_number(m, "at", t->opt->marks[i]);
        json_put_number(m, "loss", t->marks[i].loss);
        json_put_number(m, "se", t->marks[i].se);
        json_put_int(m, "n", t->marks[i].n);
        json_push(marks, m);
    }
    return marks;
}

int checkpoint_state_text(const struct trainer *t, struct strbuf *out, struct err *err)
{
    cJSON *obj = json_object(), *health = json_object();

    json_put_int(obj, "step", t->step);
    json_put_int(obj, "target_step", t->target_step);
    json_put_int(obj, "evaluated_step", t->evaluated_step);
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
static int get_mark(const cJSON *m, struct val_loss *out, struct err *err)
{
    int rc;

    out->se = (double)NAN;
    if ((rc = json_get_number(m, "loss", &out->loss, err)) < 0 ||
        (rc = json_opt_number(m, "se", &out->se, err)) < 0)
        return rc;
    return json_get_int(m, "n", -1, JSON_INT_MAX, &out->n, err);
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
    const cJSON *marks = NULL, *health = NULL;
    const char *made_by = NULL;
    int rc;

    if ((rc = json_get_int(obj, "step", 1, train_options_end(t->opt), &t->step, err)) < 0 ||
        (rc = json_get_int(obj, "target_step", -1, train_options_end(t->opt), &t->target_step,
                           err)) < 0 ||
        (rc = json_get_int(obj, "evaluated_step", -1, train_options_end(t->opt), &t->evaluated_step,
                           err)) < 0 ||
        (rc = json_get_string(obj, "made_by", &made_by, err)) < 0 ||
        (rc = json_get_array(obj, "marks", &marks, err)) < 0 ||
        (rc = json_get_object(obj, "health", &health, err)) < 0)
        return rc;
    /* Those of a continued run need not be this run's. */
    for (size_t i = 0; i < t->opt->n_marks; i++) {
        const cJSON *m = checkpoint_state_find_mark(marks, t->opt->marks[i]);
        rc = m == NULL ? 0 : get_mark(m, &t->marks[i], err);
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
