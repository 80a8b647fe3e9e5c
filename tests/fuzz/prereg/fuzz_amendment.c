/* Any bytes are either refused or an amendment that follows: then nothing that is sealed has
 * changed, the root is what it was, what differs is what the changes say, and the same again is
 * refused. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "prereg/amend/amendment.h"
#include "prereg/load/program_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static const char PROGRAM[] =
    "[program]\nname = \"p\"\nschema = 1\n[[factor]]\nname = \"a\"\nlevels = [\"x\", \"y\"]\n"
    "[stage.s]\ncommand = [\"c\"]\nparams = { shots = 5 }\n"
    "[measure]\nm = { metric = \"s.x\", floor = 0.3 }\n"
    "[contrast]\nk = { between = { a = [\"x\", \"y\"] } }\n"
    "[[input]]\nname = \"i\"\nlevels = [[\"y\", \"contrast.k.bf10 > 1\"], [\"n\", \"otherwise\"]]\n"
    "[table]\ninputs = [\"i\"]\nrows = [[\"y\", \"O\"], [\"n\", \"O\"]]\n[outcome]\nO = { prior = "
    "0.5, title = "
    "\"t\" }\n"
    "[validity]\nv = { condition = \"contrast.k.mean < 1\", on_fail = \"flag\" }\n"
    "[instrument.b]\nkind = \"bayes\"\ncontrast = \"k\"\npriors = { wide = 0.02 }\n"
    "[instrument.m]\nkind = \"items\"\ncontrast = \"k\"\n"
    "[forecast]\nf = { condition = \"contrast.k.mean > 0\", confidence = 0.8 }\n";

static struct lock *lock;

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void put_digest(cJSON *o, const char *key, const struct strbuf *text)
{
    char hex[DIGEST_HEX_SIZE];
    struct digest d = digest_bytes(text->buf, text->len);
    digest_hex(&d, hex);
    cJSON_DeleteItemFromObjectCaseSensitive(o, key);
    json_put_string(o, key, hex);
}

/* The lock of PROGRAM, without taking a digest of any file. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct plan_program *p = NULL;
    struct diag diag;
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    char path[64];
    (void)argc;
    (void)argv;
    diag_init(&diag, "grid.toml");
    must(program_parse(PROGRAM, sizeof(PROGRAM) - 1, "/grid.toml", &p, &diag, &err) == 0);
    cJSON *o = json_object();
    cJSON *locked = json_object();
    json_put(locked, "plan", program_covered(p));
    json_put(locked, "data", json_object());
    json_put(locked, "files", json_object());
    json_put(locked, "solved", json_object());
    json_put_string(locked->child->next->next, "c", "00");
    must(json_canonical(locked, &text, &err) == 0);
    json_put_int(o, "schema", LOCK_SCHEMA);
    put_digest(o, "root", &text);
    json_put(o, "locked", locked);
    json_put(o, "describe", json_object());
    json_put_string(o, "time", "2026-01-01T00:00:00.000Z");
    json_put(o, "tool", json_object());
    json_put_null(o, "git");
    json_put_null(o, "proof");
    json_put_null(o, "signature");
    strbuf_clear(&text);
    must(json_line(o, &text, &err) == 0);
    int fd = memfd_create("lock", 0);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    must(fd >= 0 && file_write_all(fd, text.buf, text.len, &err) == 0);
    must(lock_read(path, &lock, &err) == 0);
    cJSON_Delete(o);
    strbuf_release(&text);
    program_free(p);
    diag_release(&diag);
    return 0;
}

static bool same(const cJSON *a, const cJSON *b)
{
    cJSON *changes = amendment_changes(a, b);
    bool equal = changes->child == NULL;
    cJSON_Delete(changes);
    return equal;
}

static void put_head(cJSON *a)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    must(amendment_text(a, &text, &err) == 0);
    put_digest(a, "head", &text);
    strbuf_release(&text);
}

/* What no amendment reaches, whatever it says its level is. */
static void check_sealed(const cJSON *locked)
{
    static const char *const sections[] = {"program", "factor",  "contrast",  "counter", "input",
                                           "table",   "outcome", "exclusion", "pin",     "lock"};
    const cJSON *was = json_member(lock->locked, "plan");
    const cJSON *is = json_member(locked, "plan");
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        const cJSON *a = json_member(was, sections[i]);
        const cJSON *b = json_member(is, sections[i]);
        must((a == NULL) == (b == NULL) && (a == NULL || same(a, b)));
    }
    const cJSON *m = json_member(json_member(is, "measure"), "m");
    const cJSON *s = json_member(json_member(is, "stage"), "s");
    must(json_member(m, "floor")->valuedouble == 0.3);
    must(cJSON_GetArraySize(m) == 2 && cJSON_GetArraySize(json_member(is, "measure")) == 1);
    must(strcmp(json_member(s, "command")->child->valuestring, "c") == 0);
    must(same(json_member(json_member(locked, "files"), "c"), json_member(lock->files, "c")));
    const cJSON *all = json_member(is, "instrument"); /* the table reads bf10 under b's priors */
    const cJSON *b = json_member(all, "b");
    must(cJSON_GetArraySize(all) > 2 ||
         json_member(json_member(b, "priors"), "wide")->valuedouble == 0.02);
}

/* What came of it, said as changes, leads there too. */
static void check_changes(const cJSON *locked, const cJSON *amendment)
{
    struct amendment_chain chain;
    struct err err = {0};
    cJSON *a = json_copy(amendment);
    cJSON *changes = amendment_changes(lock->locked, locked);
    const bool post_hoc = strcmp(json_member(a, "level")->valuestring, "seen") == 0;
    cJSON *c;
    cJSON_ArrayForEach(c, changes)
    {
        json_put_bool(c, "post_hoc", post_hoc);
    }
    bool none = changes->child == NULL; /* to and fro within one amendment */
    cJSON_DeleteItemFromObjectCaseSensitive(a, "changes");
    json_put(a, "changes", changes);
    put_head(a);
    amendments_begin(lock, &chain);
    bool taken = amendments_append(&chain, lock->root, a, &err) == 0;
    must(taken == !none);
    must(!taken || same(chain.locked, locked));
    if (!taken) {
        cJSON_Delete(a);
    }
    amendments_release(&chain);
}

/* Taken over. */
static void try_amendment(cJSON *a)
{
    struct amendment_chain chain;
    struct err err = {0};
    amendments_begin(lock, &chain);
    if (amendments_append(&chain, lock->root, a, &err) != 0) {
        must((err.code == ERR_LOCK || err.code == ERR_VERSION) && err.msg[0] != '\0');
        must(chain.n == 0 && same(chain.locked, lock->locked));
        must(strcmp(chain.head, lock->root) == 0);
        cJSON_Delete(a);
    } else {
        must(chain.n == 1 && strcmp(chain.head, lock->root) != 0);
        check_sealed(chain.locked);
        check_changes(chain.locked, a);
        cJSON *again = json_copy(a);
        must(amendments_append(&chain, lock->root, again, &err) == ERR_LOCK); /* its number */
        cJSON_Delete(again);
    }
    amendments_release(&chain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cJSON *a = NULL;
    struct err err = {0};
    if (json_parse((const char *)data, size, &a, &err) != 0) {
        return 0;
    }
    cJSON *mended = cJSON_IsObject(a) ? json_copy(a) : NULL;
    try_amendment(a);
    if (mended != NULL) { /* in its place, so that what lies behind is reached too */
        static const char *const keys[] = {"root", "previous", "number", "head"};
        for (size_t i = 0; i < 4; i++) {
            cJSON_DeleteItemFromObjectCaseSensitive(mended, keys[i]);
        }
        json_put_string(mended, "root", lock->root);
        json_put_string(mended, "previous", lock->root);
        json_put_int(mended, "number", 1);
        struct strbuf text = STRBUF_INIT;
        if (amendment_text(mended, &text, &err) == 0) {
            put_digest(mended, "head", &text);
        }
        strbuf_release(&text);
        try_amendment(mended);
    }
    return 0;
}
