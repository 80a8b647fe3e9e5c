/*
 * The members of a suite: their names within it, and the choice of some of them, which removes the
 * others and makes the chosen ones compulsory.
 */
#include "base/text.h"
#include "base/xalloc.h"
#include "worker/eval/task/spec_private.h"

#define NONE SIZE_MAX

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
            return err_set(err, ERR_USAGE, "'%.64s' is duplicated", names[i]);
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
