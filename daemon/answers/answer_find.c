/* Finds what the parameters of a request name: a program by id, root or name, and for what cannot
 * be undone only one that was named as soon as there are several. */
#include <string.h>

#include "base/json/json.h"
#include "base/strbuf.h"
#include "daemon/answers/answer.h"

#define IDS_SAID_MAX  4
#define IDS_BYTES_MAX ((size_t)140) /* the rest of a message is words */

/* By id or by root digest; the program's name is tried after these, because it may be shared. */
static bool is_named(const struct hosted *h, const char *name)
{
    return strcmp(h->id, name) == 0 || strcmp(h->bundle->lock->root, name) == 0;
}

static int not_loaded(const struct unloaded *u, struct err *err)
{
    *err = u->why;
    return err_wrap(err, "%.80s is not loaded", u->id);
}

static const struct unloaded *find_unloaded(const struct shell *sh, const char *name)
{
    for (size_t i = 0; i < sh->n_unloaded; i++) {
        const struct unloaded *u = &sh->unloaded[i];
        if (strcmp(u->id, name) == 0 || strcmp(u->name, name) == 0) {
            return u;
        }
    }
    return NULL;
}

bool answer_is_unloaded(const struct shell *sh, const cJSON *params)
{
    const cJSON *name = json_member(params, "program");
    return cJSON_IsString(name) && find_unloaded(sh, name->valuestring) != NULL;
}

/* Names the reason why a known program is not loaded, instead of denying it. */
static int not_found(const struct shell *sh, const char *name, struct err *err)
{
    const struct unloaded *u = find_unloaded(sh, name);
    return u != NULL ? not_loaded(u, err)
                     : err_set(err, ERR_NOT_FOUND, "no program is called \"%.80s\"", name);
}

/* Id and root are unique; a name may be shared by several programs. */
static int find_by_name(const struct shell *sh, const char *name, struct hosted **out,
                        struct err *err)
{
    size_t n = 0;
    *out = NULL;
    for (size_t i = 0; i < sh->cap_programs; i++) {
        struct hosted *h = shell_served(sh, i);
        if (h == NULL) {
            continue;
        }
        if (is_named(h, name)) {
            *out = h;
            return 0;
        }
        if (strcmp(h->bundle->program->name, name) == 0) {
            *out = h;
            n++;
        }
    }
    if (n == 0) {
        return not_found(sh, name, err);
    }
    return n == 1
               ? 0
               : err_set(err, ERR_USAGE, "%zu programs are called \"%.80s\": give the id", n, name);
}

/* Damaged programs included: a submission must find them. */
struct hosted *answer_program_by_root(const struct shell *sh, const char *root)
{
    for (size_t i = 0; i < sh->cap_programs; i++) {
        struct hosted *h = sh->programs[i];
        if (h != NULL && strcmp(h->bundle->lock->root, root) == 0) {
            return h;
        }
    }
    return NULL;
}

int64_t answer_n_programs(const struct shell *sh)
{
    int64_t n = 0;
    for (size_t i = 0; i < sh->cap_programs; i++) {
        n += shell_served(sh, i) != NULL;
    }
    return n;
}

int answer_find_program(const struct shell *sh, const cJSON *params, struct hosted **out,
                        struct err *err)
{
    const char *name = NULL;
    int rc = json_opt_string(params, "program", &name, err);
    if (rc != 0) {
        return rc;
    }
    if (name != NULL) {
        return find_by_name(sh, name, out, err);
    }
    *out = NULL;
    for (size_t i = 0; i < sh->cap_programs; i++) {
        struct hosted *h = shell_served(sh, i);
        if (h != NULL && (*out == NULL || (*out)->status.reported || !h->status.reported)) {
            *out = h; /* numbers grow: the newest of those that are not finished, else the newest */
        }
    }
    if (*out == NULL && sh->n_unloaded > 0) {
        return not_loaded(&sh->unloaded[sh->n_unloaded - 1], err); /* the only ones */
    }
    return *out != NULL ? 0 : err_set(err, ERR_NOT_FOUND, "no program has been submitted");
}

/* "a-01234567, b-01234567 and 3 more": whole ids, newest first, as many as a message holds. */
static void add_ids(const struct shell *sh, int64_t n, struct strbuf *sb)
{
    int64_t said = 0;
    for (size_t i = sh->cap_programs + sh->n_unloaded; i > 0; i--) {
        const struct hosted *h =
            i > sh->n_unloaded ? shell_served(sh, i - sh->n_unloaded - 1) : NULL;
        const char *id = i <= sh->n_unloaded ? sh->unloaded[i - 1].id : h == NULL ? NULL : h->id;
        if (id != NULL && said < IDS_SAID_MAX && sb->len + strlen(id) < IDS_BYTES_MAX) {
            strbuf_addf(sb, "%s%s", said > 0 ? ", " : "", id);
            said++;
        }
    }
    if (said < n) {
        strbuf_addf(sb, "%s%lld more", said > 0 ? " and " : "", (long long)(n - said));
    }
}

int answer_find_named(const struct shell *sh, const cJSON *params, struct hosted **out,
                      struct err *err)
{
    struct strbuf ids = STRBUF_INIT;
    const int64_t n = answer_n_programs(sh) + (int64_t)sh->n_unloaded;
    int rc = answer_find_program(sh, params, out, err);
    if (rc == 0 && n > 1 && !cJSON_IsString(json_member(params, "program"))) {
        add_ids(sh, n, &ids);
        rc = err_set(err, ERR_USAGE,
                     "%lld programs are here and this cannot be taken back: say which with "
                     "--program (%s)",
                     (long long)n, ids.buf);
    }
    strbuf_release(&ids);
    return rc;
}

int answer_no_task(const struct hosted *h, const char *name, struct err *err)
{
    const struct plan_program *p = h->bundle->program;
    return err_set(err, ERR_NOT_FOUND,
                   "%s has no task \"%.60s\"; expected CELL/STAGE, such as %.60s/%.30s: `preregctl "
                   "cells` lists them",
                   h->id, name, p->cells[0].name, p->stages[0].name);
}
