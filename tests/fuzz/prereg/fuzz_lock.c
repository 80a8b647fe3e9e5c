/* Any bytes are either refused or a whole lock under its own root, of which there is a text to
 * sign; comparing it with a program or a clock only ever ends in "equal" or in a named difference.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "prereg/load/program_load.h"
#include "prereg/lock/lock.h"
#include "prereg/lock/lock_sign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static const char PROGRAM[] =
    "[program]\nname = \"p\"\nschema = 1\n[[factor]]\nname = \"a\"\nlevels = [1, 2]\n"
    "[stage.s]\ncommand = [\"c\"]\n[measure]\nm = { metric = \"s.x\" }\n"
    "[[input]]\nname = \"i\"\nlevels = [[\"y\", \"otherwise\"]]\n"
    "[table]\ninputs = [\"i\"]\nrows = [[\"y\", \"O\"]]\n[outcome]\nO = { prior = 0.5, title = "
    "\"t\" }\n";

static struct plan_program *program;
static int fd;
static char path[64];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    struct diag diag;
    struct err err = {0};
    diag_init(&diag, "grid.toml");
    if (program_parse(PROGRAM, sizeof(PROGRAM) - 1, "/grid.toml", &program, &diag, &err) != 0) {
        abort();
    }
    diag_release(&diag);
    fd = memfd_create("lock", 0);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return fd < 0 ? 1 : 0;
}

/* Puts the right root over whatever the bytes hold under "locked", so that what lies behind the
 * check of the root is reached too. */
static cJSON *with_root(const uint8_t *data, size_t size)
{
    cJSON *json = NULL;
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    char hex[DIGEST_HEX_SIZE];
    if (json_parse((const char *)data, size, &json, &err) != 0) {
        return NULL;
    }
    const cJSON *locked = cJSON_IsObject(json) ? json_member(json, "locked") : NULL;
    if (locked != NULL && json_canonical(locked, &text, &err) == 0) {
        struct digest d = digest_bytes(text.buf, text.len);
        digest_hex(&d, hex);
        cJSON_DeleteItemFromObjectCaseSensitive(json, "root");
        json_put_string(json, "root", hex);
    }
    strbuf_release(&text);
    return json;
}

static void try_bytes(const void *data, size_t size)
{
    struct lock *lock = NULL;
    struct err err = {0};
    if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0 ||
        file_write_all(fd, data, size, &err) != 0) {
        abort();
    }
    int rc = lock_read(path, &lock, &err);
    if ((rc == 0) != (lock != NULL)) {
        abort();
    }
    if (lock != NULL) {
        rc = lock_verify(program, lock, LOCK_PLAN | LOCK_DATA | LOCK_PINS, NULL, NULL, &err);
        if (rc != 0 && (rc != ERR_LOCK || err.msg[0] == '\0')) {
            abort();
        }
        rc = lock_check_time(lock, (struct wall_time){.ms = 1}, &err);
        if (rc != 0 && (rc != ERR_LOCK || err.msg[0] == '\0')) {
            abort();
        }
        struct strbuf text = STRBUF_INIT;
        if (lock_text(lock, &text, &err) != 0 || text.len == 0 ||
            (lock->signature != NULL && signature_json_shape(lock->signature, &err) != 0)) {
            abort();
        }
        strbuf_release(&text);
        free(lock_program_id(lock));
    }
    lock_free(lock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_bytes(data, size);
    cJSON *json = with_root(data, size);
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    if (json != NULL && json_line(json, &text, &err) == 0) {
        try_bytes(text.buf, text.len);
    }
    strbuf_release(&text);
    cJSON_Delete(json);
    return 0;
}
