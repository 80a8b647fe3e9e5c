/*
 * Opens a task description: the shipped ones, which are compiled into the program
 * (embed_tasks.cmake), and a user's file go through the same code. A description is one task
 * (spec_read.c) or a suite, whose members are shipped tasks that the suite owns. All faults are
 * collected; the first one and the number of the others are reported.
 */
#include "worker/eval/task/spec.h"

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "worker/eval/task/spec_private.h"

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

/* A shipped task of style dclm, by name, once. */
static void take_member(struct task_spec *suite, struct params *p, const char *name)
{
    struct task_spec *member = NULL;
    struct err err = {0};
    for (size_t i = 0; i < suite->n_members; i++) {
        if (strcmp(suite->members[i]->name, name) == 0) {
            params_fault(p, "members", "'%.64s' is duplicated", name);
            return;
        }
    }
    if (task_builtin_read(name, &member, &err) != 0) {
        params_fault(p, "members", "%s", err.msg);
    } else if (member->n_members > 0 || member->style != STYLE_DCLM) {
        params_fault(p, "members", "'%.64s' is not a task of style dclm", name);
        task_spec_free(member);
    } else {
        suite->members[suite->n_members++] = member;
    }
}

/* Members, and neutral values for a task's fields, so that code which prints or hashes a task need
 * not ask whether it is a suite. */
static void read_suite(struct task_spec *spec, struct params *p)
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

static void read_spec(struct task_spec *spec, struct params *p)
{
    params_require(p, "task");
    spec->name = spec_keep_text(spec, p, "task", "");
    if (params_has(p, "task") && !text_is_name(spec->name))
        params_fault(p, "task", "'%.64s' is not a name of a-z, 0-9 and _", spec->name);
    spec->version = spec_keep_text(spec, p, "version", "1.0");
    spec->about = spec_keep_text(spec, p, "about", "");
    if (params_has(p, "members"))
        read_suite(spec, p);
    else
        spec_read_task(spec, p);
    params_finish(p);
}
/* The first fault and the number of the others. */
static int say_faults(const struct param_faults *faults, struct err *err)
{
    char more[48] = "";
    if (faults->n == 0)
        return 0;
    if (faults->n > 1)
        (void)snprintf(more, sizeof(more), " (and %zu more)", faults->n - 1);
    return err_set(err, ERR_SYNTAX, "%s: %s%s", faults->items[0].key, faults->items[0].why, more);
}

/* A suite's digest covers its members' digests, too. */
static int take_json(struct task_spec *spec, const cJSON *obj, struct err *err)
{
    struct param_faults faults = {0};
    struct strbuf canonical = STRBUF_INIT;
    struct params p;
    if (!cJSON_IsObject(obj))
        return err_set(err, ERR_SYNTAX, "a task description is a JSON object");
    params_init(&p, obj, &faults);
    read_spec(spec, &p);
    int rc = say_faults(&faults, err);
    if (rc == 0)
        rc = json_canonical(obj, &canonical, err);
    for (size_t i = 0; i < spec->n_members; i++)
        strbuf_add(&canonical, &spec->members[i]->digest, sizeof(spec->members[i]->digest));
    if (rc == 0)
        spec->digest = digest_bytes(canonical.buf, canonical.len);
    strbuf_release(&canonical);
    param_faults_release(&faults);
    return rc;
}

int task_spec_parse(const char *text, size_t len, const char *file, struct task_spec **out,
                    struct err *err)
{
    cJSON *obj = NULL;
    *out = NULL;
    int rc = json_parse(text, len, &obj, err);
    if (rc == 0) {
        struct task_spec *spec = xcalloc(1, sizeof(*spec));
        arena_init(&spec->arena);
        rc = take_json(spec, obj, err);
        if (rc == 0)
            *out = spec;
        else
            task_spec_free(spec);
    }
    cJSON_Delete(obj);
    return rc == 0 ? 0 : err_wrap(err, "%s", file);
}

int task_spec_read(const char *path, struct task_spec **out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    *out = NULL;
    int rc = file_read(path, SPEC_FILE_MAX, &text, err);
    if (rc == 0)
        rc = task_spec_parse(text.buf, text.len, path, out, err);
    strbuf_release(&text);
    return rc;
}
