/*
 * prereg-eval tasks: lists the shipped tasks, prints one's description to start from, or checks a
 * user's own file by reading it. All texts go through terminal_text(), since a user's file may
 * contain anything.
 */
#include "base/strbuf.h"
#include "base/terminal.h"
#include "base/xalloc.h"
#include "worker/eval/cli/commands.h"
#include "worker/eval/task/spec.h"
#include "worker/report/flags.h"

static void add_list(struct strbuf *out, const char *const *names, size_t n, const char *between)
{
    for (size_t i = 0; i < n; i++)
        strbuf_addf(out, "%s%s", i == 0 ? "" : between, names[i]);
}

/* Which files of a folder it takes, with the split in its places. */
static void add_files(struct strbuf *out, const struct task_spec *spec, const char *split)
{
    static const char mark[] = "<split>";
    for (size_t i = 0; i < spec->n_files; i++) {
        strbuf_adds(out, i == 0 ? "" : " or ");
        for (const char *c = spec->files[i]; *c != '\0'; c++) {
            if (strncmp(c, mark, sizeof(mark) - 1) == 0) {
                strbuf_adds(out, split);
                c += sizeof(mark) - 2;
            } else {
                strbuf_addc(out, *c);
            }
        }
    }
}

static void add_suite(struct strbuf *text, const struct task_spec *suite)
{
    strbuf_addf(text, "    version   %s\n    members   ", suite->version);
    for (size_t i = 0; i < suite->n_members; i++)
        strbuf_addf(text, "%s%s", i == 0 ? "" : ", ", task_spec_member_name(suite, i));
    strbuf_adds(text, "\n    metrics   core, core_partial; acc:MEMBER, centered:MEMBER\n"
                      "    files     the members', each a task too\n");
}

/* Kind, examples, metrics, files and columns of a task. */
static void add_task(struct strbuf *text, const struct task_spec *spec)
{
    const bool is_dclm = spec->style == STYLE_DCLM;
    strbuf_addf(text, "    kind      %s, version %s\n", task_kind_name(spec->kind), spec->version);
    strbuf_addf(text, "    examples  %d unless asked for, %s\n", spec->shots,
                spec->sampler == SAMPLER_FIRST ? "the first of the group" : "drawn for every item");
    strbuf_adds(text, "    metrics   ");
    for (size_t i = 0; i < spec->n_metrics; i++)
        strbuf_addf(text, "%s%s", i == 0 ? "" : ", ", spec->metrics[i].name);
    strbuf_addf(text, "%s\n    files     ", is_dclm ? ", centered" : "");
    add_files(text, spec, spec->split);
    if (!is_dclm) {
        strbuf_adds(text, "; examples from ");
        add_files(text, spec, spec->fewshot_split);
    }
    for (size_t i = 0; i < spec->n_forms; i++) {
        strbuf_addf(text, "\n    %s  ", i == 0 ? "records " : "      or");
        add_list(text, spec->forms[i].needs, spec->forms[i].n_needs, ", ");
    }
    strbuf_adds(text, "\n");
}

/* Name, one line about it, and what it needs and gives. */
static void print_task(const struct task_spec *spec, FILE *out)
{
    struct strbuf text = STRBUF_INIT;
    strbuf_addf(&text, "%s  %s\n", spec->name, spec->about);
    if (spec->n_members > 0)
        add_suite(&text, spec);
    else
        add_task(&text, spec);
    terminal_text(out, text.buf, text.len, false); /* of a file, too */
    strbuf_release(&text);
}

static int print_all(FILE *out, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < task_builtin_count(); i++) {
        struct task_spec *spec = NULL;
        rc = task_builtin_read(task_builtin_name(i), &spec, err);
        if (rc == 0)
            print_task(spec, out);
        task_spec_free(spec);
    }
    return rc;
}

static int print_one(const char *name, FILE *out, struct err *err)
{
    struct task_spec *spec = NULL;
    int rc = task_builtin_read(name, &spec, err);
    task_spec_free(spec);
    for (size_t i = 0; rc == 0 && i < task_builtin_count(); i++)
        if (strcmp(task_builtin_name(i), name) == 0)
            fputs(task_builtin_text(i), out);
    return rc;
}

static int check_file(const char *path, FILE *out, struct err *err)
{
    struct task_spec *spec = NULL;
    int rc = task_spec_read(path, &spec, err);
    if (rc == 0)
        print_task(spec, out);
    task_spec_free(spec);
    return rc;
}

int command_tasks(char **args, FILE *out, struct err *err)
{
    struct flag flags[] = {{.name = "--check"}};
    int rc = flags_take(args, flags, ARRAY_LEN(flags), err);
    if (rc != 0)
        return rc;
    if (args[0] != NULL && (args[1] != NULL || flags[0].value != NULL))
        return err_set(err, ERR_USAGE, "tasks takes one name, or --check and a file");
    if (flags[0].value != NULL)
        return check_file(flags[0].value, out, err);
    return args[0] != NULL ? print_one(args[0], out, err) : print_all(out, err);
}
