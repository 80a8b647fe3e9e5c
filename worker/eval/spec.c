/*
 * Names of the enums, which metrics a kind of task may have, and the shipped descriptions. The
 * latter are compiled into the program (embed_tasks.cmake) and parsed when they are asked for, by
 * the same code as a user's file.
 */
#include "worker/eval/spec.h"

#include "base/text.h"
#include "base/xalloc.h"
#include "worker/eval/spec_private.h"

void task_spec_free(struct task_spec *spec)
{
    if (spec == NULL)
        return;
    for (size_t i = 0; i < spec->n_members; i++)
        task_spec_free(spec->members[i]);
    arena_release(&spec->arena);
    free(spec);
}

size_t task_builtin_count(void)
{
    return n_builtin_tasks;
}

const char *task_builtin_name(size_t i)
{
    return builtin_tasks[i].name;
}

const char *task_builtin_text(size_t i)
{
    return (const char *)builtin_tasks[i].text;
}

int task_builtin_read(const char *name, struct task_spec **out, struct err *err)
{
    const char *names[SPEC_BUILTIN_MAX];
    *out = NULL;
    for (size_t i = 0; i < n_builtin_tasks; i++) {
        if (strcmp(builtin_tasks[i].name, name) == 0)
            return task_spec_parse(task_builtin_text(i), strlen(task_builtin_text(i)), name, out,
                                   err);
        names[i] = builtin_tasks[i].name;
    }
    const char *nearest = text_nearest(name, names, n_builtin_tasks);
    if (nearest != NULL)
        return err_set(err, ERR_USAGE, "'%.64s' is not known; did you mean '%s'?", name, nearest);
    return err_set(err, ERR_USAGE, "'%.64s' is not known; prereg-eval tasks lists what is", name);
}
