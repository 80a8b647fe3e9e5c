/*
 * Opens a shared state folder: local folder, tenure, database, in this order. A database is trusted
 * only if the last daemon of the folder used it (its id is in the tenure); any other is rebuilt
 * from the journals, which are the truth. The rebuild refuses where it would have to begin a
 * journal again: that is for a person to decide.
 */
#include "daemon/shared_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/shared_dir.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/uuid.h"
#include "base/xalloc.h"
#include "state/rebuild/rebuild.h"

#define ID_MAX ((size_t)8192)

/* ---- the local folder ---- */

static int check_local_disk(const char *folder, struct err *err)
{
    const char *network = shared_network_name(folder, err);
    if (network == NULL) {
        return err->code;
    }
    return err_set(
        err, ERR_REFUSED,
        "--database %s is on %s, whose locks and syncs cannot be relied on: name a folder "
        "on a local disk",
        folder, network);
}

static int make_private(const char *folder, struct err *err)
{
    int rc = dir_make_durable(folder, 0700, err);
    return rc != 0 ? rc : dir_check_private(folder, err);
}

int shared_state_local(const struct serve_options *o, char **out, struct err *err)
{
    *out = NULL;
    int rc = make_private(o->state, err);
    if (rc != 0) {
        return rc;
    }
    char *local =
        o->database != NULL ? path_absolute(NULL, o->database) : tenure_local_folder(o->state);
    if (strcmp(local, o->state) != 0) {
        rc = make_private(local, err);
        if (rc == 0) {
            rc = check_local_disk(local, err);
        }
    } else if (o->database != NULL) {
        rc = err_set(err, ERR_USAGE, "--database names the state folder itself");
    } else if (tenure_is_kept(o->state)) {
        rc =
            err_set(err, ERR_USAGE,
                    "the state folder %s is shared between hosts: name a folder on a local disk of "
                    "this host for the database (`preregd serve --database FOLDER`)",
                    o->state);
    }
    if (rc != 0) {
        free(local);
        return rc;
    }
    *out = local;
    return 0;
}

/* "<uuid>\n<state folder>\n": the database of one state folder must not be used for another. */
static int read_id(const char *path, const char *state, char id[UUID_TEXT_SIZE], struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = file_read(path, ID_MAX, &text, err);
    char *line = rc == 0 ? strchr(text.buf, '\n') : NULL;
    if (rc == 0) {
        rc = err_set(err, ERR_CORRUPT,
                     "%s: expected an id and a folder; remove it to have the "
                     "database rebuilt",
                     path);
        if (line != NULL) {
            *line = '\0';
            line[1 + strcspn(line + 1, "\n")] = '\0';
            if (uuid_is_valid(text.buf) && strcmp(line + 1, state) == 0) {
                memcpy(id, text.buf, UUID_TEXT_SIZE);
                rc = 0;
            } else if (uuid_is_valid(text.buf)) {
                rc = err_set(err, ERR_REFUSED,
                             "%s: this folder has the database of the state folder %.120s", path,
                             line + 1);
            }
        }
    }
    strbuf_release(&text);
    return rc;
}

static int have_id(const char *local, const char *state, char id[UUID_TEXT_SIZE], struct err *err)
{
    char *path = path_join(local, LAYOUT_DATABASE_ID);
    char *real = realpath(state, NULL);
    const char *named = real != NULL ? real : state;
    int rc;
    if (file_kind_at(path) == FILE_ABSENT) {
        uuid_make(id);
        char *text = xasprintf("%s\n%s\n", id, named);
        rc = file_write_atomic(path, text, strlen(text), 0600, err);
        free(text);
    } else {
        rc = read_id(path, named, id, err);
    }
    free(real);
    free(path);
    return rc;
}

/* ---- open ---- */

/* A daemon that serves the folder as an ordinary one has no tenure. Its lock proves it on its own
 * host; on another one its socket at least shows that there was one. */
static int refuse_ordinary(const char *state, struct err *err)
{
    bool held = false;
    char *lock = path_join(state, LAYOUT_STATE_LOCK);
    int rc = lock_is_held(lock, &held, err);
    if (rc == 0 && held) {
        rc = err_set(err, ERR_BUSY,
                     "a preregd without --database serves the state folder %s: `preregctl stop` "
                     "ends it",
                     state);
    }
    free(lock);
    return rc;
}

static bool has_database(const char *local)
{
    char *database = path_join(local, LAYOUT_DATABASE);
    bool there = file_kind_at(database) == FILE_REGULAR;
    free(database);
    return there;
}

static bool has_programs(const char *state)
{
    struct name_list names = {0};
    struct err ignored;
    char *programs = path_join(state, LAYOUT_PROGRAMS);
    bool has = dir_list(programs, &names, &ignored) != 0 || names.n > 0;
    has = has && file_kind_at(programs) == FILE_FOLDER;
    name_list_release(&names);
    free(programs);
    return has;
}

static void release_tenure(const char *state, struct tenure *own)
{
    struct err ignored;
    own->released = true;
    if (tenure_check(state, own, &ignored) == 0 && tenure_renew(state, own, &ignored) != 0) {
        log_warn("the end of this daemon cannot be noted: %s", ignored.msg);
    }
}

/* From here on the database follows from the journals, and the tenure says so. */
static int rebuild_database(const char *state, const struct shared_state *s, const char *id,
                            struct tenure *own, struct err *err)
{
    int rc = 0;
    if (has_programs(state)) {
        log_info("the database in %s is absent, or another daemon served since: it is rebuilt from "
                 "the journals",
                 s->local);
        rc = store_rebuild_whole(state, err);
    }
    if (rc != 0 || (rc = tenure_check(state, own, err)) != 0) {
        return rc;
    }
    (void)snprintf(own->database_id, sizeof(own->database_id), "%s", id);
    return tenure_renew(state, own, err);
}

int shared_state_open(const struct serve_options *o, struct shared_state *out, struct err *err)
{
    char id[UUID_TEXT_SIZE] = "";
    *out = (struct shared_state){0};
    int rc = shared_state_local(o, &out->local, err);
    if (rc != 0) {
        return rc;
    }
    out->is_shared = strcmp(out->local, o->state) != 0;
    if (!out->is_shared) {
        return o->take_over ? err_set(err, ERR_USAGE,
                                      "--take-over is for a state folder that is shared between "
                                      "hosts (--database)")
                            : 0;
    }
    struct take_request q = {.state = o->state,
                             .database = out->local,
                             .database_id = id,
                             .person = o->take_over,
                             .confirm = o->confirm};
    if ((rc = refuse_ordinary(o->state, err)) != 0 ||
        (rc = have_id(out->local, o->state, id, err)) != 0) {
        return rc;
    }
    q.has_database = has_database(out->local);
    rc = tenure_take(&q, &out->taken, err);
    if (rc != 0) {
        return rc;
    }
    if (out->taken.had_holder) {
        log_info("the state folder is taken over %s", out->taken.story);
    }
    if (out->taken.own.database_id[0] == '\0') {
        rc = rebuild_database(o->state, out, id, &out->taken.own, err);
    }
    if (rc != 0) {
        release_tenure(o->state, &out->taken.own);
    }
    return rc;
}

void shared_state_release(struct shared_state *s)
{
    free(s->local);
    *s = (struct shared_state){0};
}

/* ---- the journal ---- */

struct noting {
    const char *story;
    struct state_row *rows;
    size_t n;
    size_t cap;
};

/* A program that has its verdict and report is not served any more: nothing is added to it. */
static int note_program(void *ctx, const struct store_program *p, struct err *err)
{
    struct noting *n = ctx;
    (void)err;
    if (!p->status.verdict || !p->status.reported) {
        ARRAY_GROW(n->rows, n->n, n->cap);
        n->rows[n->n++] = (struct state_row){.kind = ROW_TAKEN_OVER,
                                             .program = p->no,
                                             .time = clock_wall(),
                                             .status = p->status,
                                             .detail = n->story};
    }
    return 0;
}

int shared_state_journal(const struct shared_state *s, struct store *store, struct err *err)
{
    struct noting n = {.story = s->taken.story};
    if (!s->is_shared || !s->taken.had_holder || s->taken.proof == TENURE_RELEASED) {
        return 0;
    }
    int rc = store_programs(store, note_program, &n, err);
    if (rc == 0 && n.n > 0) {
        rc = store_begin(store, err);
        if (rc == 0) {
            rc = store_apply(store, n.rows, n.n, err);
        }
        if (rc == 0) {
            rc = store_commit(store, err);
        } else {
            store_rollback(store);
        }
    }
    free(n.rows);
    return rc == 0 ? 0 : err_wrap(err, "journal the takeover");
}
