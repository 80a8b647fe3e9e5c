#include "prereg/open_reads.h"

#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/xalloc.h"

#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

struct open {
    const struct program *p;
    cJSON *names;
    struct diag *diag; /* or NULL */
};

static bool is_of_name(char c)
{
    return c != '\0' && strchr(NAME_CHARS, c) != NULL;
}

/* Whether the name at `at` belongs to contrast.K[M] or measure.M. */
static bool is_a_measure(const char *text, const char *at)
{
    static const char word[] = "measure.";
    const size_t n = sizeof(word) - 1;
    const char *before = at;
    while (before > text && (before[-1] == ' ' || before[-1] == '\t')) {
        before--;
    }
    return (before > text && before[-1] == '[') ||
           ((size_t)(at - text) >= n && strncmp(at - n, word, n) == 0);
}

static bool names_measure(const char *text, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
        if ((at == text || !is_of_name(at[-1])) && !is_of_name(at[n]) && is_a_measure(text, at)) {
            return true;
        }
    }
    return false;
}

static void found(struct open *o, const struct cond_text *at, const char *name)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, o->names)
    {
        if (strcmp(one->valuestring, name) == 0) {
            return;
        }
    }
    json_push_string(o->names, name);
    if (o->diag != NULL) {
        diag_add(o->diag, DIAG_WARNING, at->place.line, at->place.column,
                 "the table reads %s, which is not sealed while cells run: the outcome can be seen "
                 "coming; count a measure of its stage, or leave it out of the table",
                 name);
    }
}

static void find_measures(struct open *o, const struct cond_text *c)
{
    const struct program *p = o->p;
    for (size_t m = 0; m < p->n_measures; m++) {
        if (!program_stage_is_sealed(p, p->measures[m].stage) &&
            names_measure(c->text, p->measures[m].name)) {
            char *name = xasprintf("measure %s", p->measures[m].name);
            found(o, c, name);
            free(name);
        }
    }
}

/* fact.STAGE.NAME, and the first argument of ratio() is one. */
static void find_facts(struct open *o, const struct cond_text *c)
{
    static const char word[] = "fact.";
    const size_t n = sizeof(word) - 1;
    for (const char *at = strstr(c->text, word); at != NULL; at = strstr(at + n, word)) {
        const char *stage = at + n;
        const size_t n_stage = strspn(stage, NAME_CHARS);
        const size_t n_name = stage[n_stage] == '.' ? strspn(stage + n_stage + 1, NAME_CHARS) : 0;
        char *name = xstrndup(stage, n_stage);
        const size_t s = program_find_stage(o->p, name);
        if ((at == c->text || !is_of_name(at[-1])) && n_name > 0 && s != INDEX_NONE &&
            !program_stage_is_sealed(o->p, s)) {
            char *whole = xstrndup(at, n + n_stage + 1 + n_name);
            found(o, c, whole);
            free(whole);
        }
        free(name);
    }
}

static cJSON *look(const struct program *p, struct diag *diag)
{
    struct open o = {.p = p, .names = json_array(), .diag = diag};
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        const struct input *in = &p->inputs[p->table_inputs[i]];
        for (size_t l = 0; l < in->n_levels; l++) {
            find_measures(&o, &in->levels[l].condition);
            find_facts(&o, &in->levels[l].condition);
        }
    }
    return o.names;
}

cJSON *open_reads(const struct program *p)
{
    return look(p, NULL);
}

void open_reads_check(const struct program *p, struct diag *diag)
{
    cJSON_Delete(look(p, diag));
}
