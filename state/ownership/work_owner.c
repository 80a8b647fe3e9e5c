/* Reads, judges and claims owner.json. The judgement is in judge(); its rules are tried in their
 * order. */
#include "state/ownership/work_owner.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/claim.h"
#include "base/files/file.h"
#include "base/files/shared_dir.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "state/ownership/state_id.h"
#include "state/tenure/record.h"

#define OWNER_MAX  ((size_t)16 << 10)
#define PATH_SHOWN 60
#define TRIES      4 /* of a claim that meets others */

int work_owner_init(struct work_owner *own, const char *state, struct err *err)
{
    assert(own != NULL && state != NULL);
    struct tenure here;
    char *path = path_absolute(NULL, state);
    *own = (struct work_owner){0};
    tenure_init(&here);
    memcpy(own->host, here.host, sizeof(own->host));
    (void)snprintf(own->state, sizeof(own->state), "%s", path);
    free(path);
    return state_id_have(state, own->id, err);
}

/* ---- the file ---- */

static int take_text(const cJSON *o, const char *key, char *to, size_t size, struct err *err)
{
    const char *text = NULL;
    int rc = json_get_string(o, key, &text, err);
    if (rc == 0 && (strlen(text) >= size || !text_is_plain(text))) {
        rc = err_set(err, ERR_CORRUPT, "\"%s\" is too long or not plain text", key);
    }
    if (rc == 0) {
        (void)snprintf(to, size, "%s", text);
    }
    return rc;
}

static int parse(const struct strbuf *text, struct work_owner *out, struct err *err)
{
    cJSON *o = NULL;
    int64_t schema = 0;
    int rc = json_parse(text->buf, text->len, &o, err);
    if (rc == 0 && ((rc = json_get_int(o, "schema", 1, 1, &schema, err)) != 0 ||
                    (rc = take_text(o, "state_id", out->id, sizeof(out->id), err)) != 0 ||
                    (rc = take_text(o, "host", out->host, sizeof(out->host), err)) != 0 ||
                    (rc = take_text(o, "state", out->state, sizeof(out->state), err)) != 0 ||
                    (rc = take_text(o, "since", out->since, sizeof(out->since), err)) != 0)) {
        goto out;
    }
    if (rc == 0 && !uuid_is_valid(out->id)) {
        rc = err_set(err, ERR_CORRUPT, "\"state_id\" is not a UUID");
    }
out:
    cJSON_Delete(o);
    return rc;
}

int work_owner_read(const char *folder, struct work_owner *out, struct err *err)
{
    assert(folder != NULL && out != NULL);
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(folder, LAYOUT_OWNER);
    *out = (struct work_owner){0};
    int rc = shared_read(path, OWNER_MAX, &text, err);
    if (rc == 0 && parse(&text, out, err) != 0) {
        rc = err_wrap(err, "%.120s says which state folder has these cells, and cannot be read",
                      path);
        err->code = rc = ERR_CORRUPT;
    }
    strbuf_release(&text);
    free(path);
    return rc;
}

static int write_text(const struct work_owner *own, struct strbuf *out, struct err *err)
{
    char now[WALL_TEXT_SIZE];
    cJSON *o = json_object();
    clock_wall_text(clock_wall(), now);
    json_put_int(o, "schema", 1);
    json_put_string(o, "state_id", own->id);
    json_put_string(o, "host", own->host);
    json_put_string(o, "state", own->state);
    json_put_string(o, "since", own->since[0] != '\0' ? own->since : now);
    int rc = json_line(o, out, err);
    strbuf_addc(out, '\n');
    cJSON_Delete(o);
    return rc;
}

static int claim(const char *folder, const struct work_owner *own, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(folder, LAYOUT_OWNER);
    int rc = write_text(own, &text, err);
    if (rc == 0) {
        rc = claim_file(path, text.buf, text.len, err);
    }
    if (rc == 0) {
        claim_sweep(folder);
    }
    strbuf_release(&text);
    free(path);
    return rc;
}

static int replace(const char *folder, const struct work_owner *own, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(folder, LAYOUT_OWNER);
    int rc = write_text(own, &text, err);
    if (rc == 0) {
        rc = file_write_atomic(path, text.buf, text.len, 0600, err);
    }
    strbuf_release(&text);
    free(path);
    return rc;
}

/* ---- the judgement ---- */

enum finding {
    FOUND_OURS,  /* as this daemon writes it */
    FOUND_MOVED, /* of this state, when it was elsewhere */
    FOUND_COPY,  /* of this state's id, whose folder is at another path, too */
    FOUND_OTHER,
};

/* Whether the state folder that the file names is seen from here, with the id that it names. */
static bool is_there(const struct work_owner *who)
{
    char id[UUID_TEXT_SIZE];
    struct err ignored;
    return state_id_read(who->state, id, &ignored) == 0 && strcmp(id, who->id) == 0;
}

static bool is_same_folder(const char *a, const char *b)
{
    struct stat sa;
    struct stat sb;
    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
           sa.st_ino == sb.st_ino;
}

static enum finding judge(const struct work_owner *found, const struct work_owner *own)
{
    /* 1. Of another state. */
    if (strcmp(found->id, own->id) != 0) {
        return FOUND_OTHER;
    }
    /* 2. Of this one, from this host and path. */
    if (strcmp(found->host, own->host) == 0 && strcmp(found->state, own->state) == 0) {
        return FOUND_OURS;
    }
    /* 3. Both paths are there and lead to different folders: one was copied from the other. */
    return is_there(found) && !is_same_folder(found->state, own->state) ? FOUND_COPY : FOUND_MOVED;
}

/* The end of a long path says more than its beginning. */
static const char *path_end(const char *path, const char **dots)
{
    size_t n = strlen(path);
    *dots = n > PATH_SHOWN ? "..." : "";
    return n > PATH_SHOWN ? path + n - PATH_SHOWN : path;
}

static int refuse_other(const struct work_owner *found, struct err *err)
{
    const char *dots = "";
    const char *path = path_end(found->state, &dots);
    return err_set(err, ERR_BUSY,
                   "the cells in [run] work belong to the state %s%s of host %.20s (since %.10s): "
                   "submit it there, or choose another folder; if it is gone for good, `preregd "
                   "submit --adopt-work`",
                   dots, path, found->host, found->since);
}

static int refuse_copy(const struct work_owner *found, struct err *err)
{
    const char *dots = "";
    const char *path = path_end(found->state, &dots);
    return err_set(err, ERR_BUSY,
                   "the cells in [run] work belong to the state %s%s of host %.20s, and this state "
                   "is a copy of it: use that one, or remove state-id here and choose another "
                   "folder",
                   dots, path, found->host);
}

static int refuse_adoption(const struct work_owner *found, struct err *err)
{
    const char *dots = "";
    const char *path = path_end(found->state, &dots);
    return err_set(err, ERR_BUSY,
                   "--adopt-work: the state %s%s of host %.20s, to which the cells in [run] work "
                   "belong, is not gone: submit it there, or choose another folder",
                   dots, path, found->host);
}

/* ---- what callers ask for ---- */

/* Whether `own` may claim what another has. */
static int check_other(const struct work_owner *found, bool adopt, struct err *err)
{
    if (!adopt) {
        return refuse_other(found, err);
    }
    return is_there(found) ? refuse_adoption(found, err) : 0;
}

int work_owner_check(const char *folder, const struct work_owner *own, bool adopt, struct err *err)
{
    assert(folder != NULL && own != NULL);
    struct work_owner found;
    int rc = work_owner_read(folder, &found, err);
    if (rc != 0) {
        return rc == ERR_NOT_FOUND ? 0 : rc;
    }
    switch (judge(&found, own)) {
    case FOUND_OURS:
    case FOUND_MOVED: return 0;
    case FOUND_COPY: return refuse_copy(&found, err);
    case FOUND_OTHER: break;
    }
    return check_other(&found, adopt, err);
}

/* Once it is read. A state that was only moved has it since it claimed it first. */
static int claim_found(const char *folder, const struct work_owner *found,
                       const struct work_owner *own, bool adopt, struct err *err)
{
    struct work_owner next = *own;
    int rc = 0;
    switch (judge(found, own)) {
    case FOUND_OURS: return 0;
    case FOUND_MOVED: memcpy(next.since, found->since, sizeof(next.since)); break;
    case FOUND_COPY: return refuse_copy(found, err);
    case FOUND_OTHER: rc = check_other(found, adopt, err); break;
    }
    return rc == 0 ? replace(folder, &next, err) : rc;
}

int work_owner_claim(const char *folder, const struct work_owner *own, bool adopt, struct err *err)
{
    assert(folder != NULL && own != NULL);
    int rc = ERR_EXISTS;
    for (int i = 0; rc == ERR_EXISTS && i < TRIES; i++) {
        struct work_owner found;
        rc = work_owner_read(folder, &found, err);
        rc = rc == 0               ? claim_found(folder, &found, own, adopt, err)
             : rc == ERR_NOT_FOUND ? claim(folder, own, err)
                                   : rc;
    }
    if (rc == ERR_EXISTS) { /* it is there, and is not visible */
        err->code = rc = ERR_IO;
    }
    return rc;
}

int work_owner_keep(const char *folder, const struct work_owner *own, struct err *err)
{
    assert(folder != NULL && own != NULL);
    struct work_owner found;
    int rc = work_owner_read(folder, &found, err);
    if (rc != 0) {
        return rc == ERR_NOT_FOUND ? work_owner_claim(folder, own, false, err) : rc;
    }
    switch (judge(&found, own)) {
    case FOUND_OURS: return 0;
    case FOUND_MOVED: /* not by us: this daemon wrote its own host and path */
    case FOUND_COPY: return refuse_copy(&found, err);
    case FOUND_OTHER: break;
    }
    return refuse_other(&found, err);
}

void work_owner_release(const char *folder, const struct work_owner *own)
{
    assert(folder != NULL && own != NULL);
    struct work_owner found;
    struct err ignored;
    if (work_owner_read(folder, &found, &ignored) == 0 && strcmp(found.id, own->id) == 0) {
        char *path = path_join(folder, LAYOUT_OWNER);
        (void)unlink(path);
        free(path);
    }
}
