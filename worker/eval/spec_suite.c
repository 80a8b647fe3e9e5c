/*
 * Suites: several tasks of one style that run as one, with names and means of their own. A suite
 * owns its members; it has the fields of a task only so that code which prints or hashes a task
 * need not ask. Choosing members removes the others and makes the chosen ones compulsory.
 */
#include "base/text.h"
#include "base/xalloc.h"
#include "worker/eval/spec_private.h"

#define NONE SIZE_MAX

/* A shipped task of style dclm, by name, once. */
static void take_member(struct task_spec *suite, struct params *p, const char *name)
{
    struct task_spec *member = NULL;
    struct err err = {0};
    for (size_t i = 0; i < suite->n_members; i++) {
        if (strcmp(suite->members[i]->name, name) == 0) {
            params_fault(p, "members", "'%.64s' is there twice", name);
            return;
        }
    }
    if (task_builtin_read(name, &member, &err) != 0) {
        params_fault(p, "members", "%s", err.msg);
    } else if (member->n_members > 0 || member->style != STYLE_DCLM) {
        params_fault(p, "members", "'%.64s' is no task of style dclm", name);
        task_spec_free(member);
    } else {
        suite->members[suite->n_members++] = member;
    }
}

/* Members, and neutral values for a task's fields. */
void spec_read_suite(struct task_spec *spec, struct params *p)
{
    const char *const *names = NULL;
    size_t n = 0;
    spec_read_texts(spec, p, "members", &names, &n);
    if (n == 0)
        params_fault(p, "members", "is empty");
    spec->members = arena_array(&spec->arena, n + 1, sizeof(*spec->members));
    for (size_t i = 0; i < n; i++)
        take_member(spec, p, names[i]);
    spec->kind = TASK_CHOICE;
    spec->style = STYLE_DCLM;
    spec->sampler = SAMPLER_DCLM;
    spec->shots = -1;
    spec->delimiter = "";
    spec->shot_delimiter = "";
    spec->split = "";
    spec->fewshot_split = "";
}

const char *task_spec_member_name(const struct task_spec *suite, size_t i)
{
    const char *name = suite->members[i]->name;
    const size_t n = strlen(suite->name);
    return strncmp(name, suite->name, n) == 0 && name[n] == '_' ? name + n + 1 : name;
}

static size_t find_member(const struct task_spec *suite, const char *name)
{
    for (size_t i = 0; i < suite->n_members; i++)
        if (strcmp(task_spec_member_name(suite, i), name) == 0)
            return i;
    return NONE;
}

static int say_unknown(const struct task_spec *suite, const char *name, struct err *err)
{
    const char *known[SPEC_LIST_MAX];
    for (size_t i = 0; i < suite->n_members; i++)
        known[i] = task_spec_member_name(suite, i);
    const char *nearest = text_nearest(name, known, suite->n_members);
    return err_set(err, ERR_USAGE, "%s has no member '%.64s'%s%s%s", suite->name, name,
                   nearest == NULL ? "" : "; did you mean '", nearest == NULL ? "" : nearest,
                   nearest == NULL ? "" : "'?");
}

int task_spec_choose_members(struct task_spec *suite, const char *const *names, size_t n,
                             struct err *err)
{
    bool chosen[SPEC_LIST_MAX] = {false};
    for (size_t i = 0; i < n; i++) {
        const size_t at = find_member(suite, names[i]);
        if (at == NONE)
            return say_unknown(suite, names[i], err);
        if (chosen[at])
            return err_set(err, ERR_USAGE, "'%.64s' is there twice", names[i]);
        chosen[at] = true;
    }
    if (n == 0)
        return err_set(err, ERR_USAGE, "no member is named");
    size_t kept = 0;
    for (size_t i = 0; i < suite->n_members; i++) {
        if (chosen[i])
            suite->members[kept++] = suite->members[i];
        else
            task_spec_free(suite->members[i]);
    }
    suite->n_members = kept;
    suite->needs_members = true;
    return 0;
}
