/*
 * The groups that a task's items come in: which there are, and which of them are read. A task that
 * lists parents knows all its groups; another takes whatever files match. Choosing a parent chooses
 * all its members.
 */
#include "base/text.h"
#include "base/xalloc.h"
#include "worker/eval/task/spec_private.h"

bool task_spec_has_groups(const struct task_spec *spec)
{
    return spec->n_files > 0 && strstr(spec->files[0], SPEC_MARK_GROUP) != NULL;
}

static bool is_among(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

size_t task_spec_parent_of(const struct task_spec *spec, const char *group)
{
    for (size_t i = 0; i < spec->n_parents; i++)
        if (is_among(spec->parents[i].members, spec->parents[i].n_members, group))
            return i;
    return SIZE_MAX;
}

/* The nearest of the groups, and of the parents where they may be meant. */
static int say_no_group(const struct task_spec *spec, const char *name, bool or_parent,
                        struct err *err)
{
    const char *known[SPEC_LIST_MAX];
    size_t n = 0;
    for (size_t i = 0; i < spec->n_parents; i++) {
        const struct task_parent *parent = &spec->parents[i];
        if (or_parent && n < ARRAY_LEN(known))
            known[n++] = parent->name;
        for (size_t k = 0; k < parent->n_members && n < ARRAY_LEN(known); k++)
            known[n++] = parent->members[k];
    }
    const char *nearest = text_nearest(name, known, n);
    return err_set(err, ERR_SYNTAX, "%s has no group '%.60s'%s%s%s", spec->name, name,
                   nearest == NULL ? "" : "; is '", nearest == NULL ? "" : nearest,
                   nearest == NULL ? "" : "' meant?");
}

/* Without parents every group is known. */
static bool knows(const struct task_spec *spec, const char *group)
{
    return spec->n_parents == 0 || task_spec_parent_of(spec, group) != SIZE_MAX;
}

int task_spec_check_group(const struct task_spec *spec, const char *group, struct err *err)
{
    return knows(spec, group) ? 0 : say_no_group(spec, group, false, err);
}

bool task_spec_takes_group(const struct task_spec *spec, const char *group)
{
    return spec->n_chosen == 0 || is_among(spec->chosen, spec->n_chosen, group);
}

static int choose_group(struct task_spec *spec, const char **chosen, const char *name,
                        struct err *err)
{
    if (is_among(chosen, spec->n_chosen, name))
        return err_set(err, ERR_USAGE, "'%.64s' is duplicated", name);
    chosen[spec->n_chosen++] = arena_strdup(&spec->arena, name);
    return 0;
}

/* A group, or a parent's all. */
static int choose(struct task_spec *spec, const char **chosen, const char *name, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < spec->n_parents; i++) {
        const struct task_parent *parent = &spec->parents[i];
        if (strcmp(parent->name, name) != 0)
            continue;
        for (size_t k = 0; k < parent->n_members && rc == 0; k++)
            rc = choose_group(spec, chosen, parent->members[k], err);
        return rc;
    }
    if (knows(spec, name))
        return choose_group(spec, chosen, name, err);
    (void)!say_no_group(spec, name, true, err);
    return err->code = ERR_USAGE;
}

/* The array is large enough for every name being a parent. */
int task_spec_choose_groups(struct task_spec *spec, const char *const *names, size_t n,
                            struct err *err)
{
    size_t most = n;
    int rc = 0;
    if (!task_spec_has_groups(spec))
        return err_set(err, ERR_USAGE, "%s has no groups", spec->name);
    if (n == 0)
        return err_set(err, ERR_USAGE, "no group is named");
    for (size_t i = 0; i < spec->n_parents; i++)
        most += spec->parents[i].n_members;
    const char **chosen = arena_array(&spec->arena, most, sizeof(*chosen));
    spec->chosen = chosen;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = choose(spec, chosen, names[i], err);
    return rc;
}
