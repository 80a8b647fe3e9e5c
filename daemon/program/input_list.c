/* A task's inputs: finding one by its stage, reading its accepted result, refusing one that is not
 * what was accepted. */
#include "daemon/program/inputs.h"

#include <string.h>

#include "base/files/file.h"
#include "base/files/shared_dir.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/program/cells.h"
#include "daemon/program/result.h"

int accepted_read(const char *path, const struct digest *digest, cJSON **out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    *out = NULL;
    int rc = file_read(path, LAYOUT_RESULT_MAX, &text, err);
    if (rc == 0) {
        struct digest found = digest_bytes(text.buf, text.len);
        rc = digest_equal(&found, digest)
                 ? json_parse_lax(text.buf, text.len, out, err)
                 : err_set(err, ERR_CORRUPT, "%s was changed after it had been accepted", path);
    }
    strbuf_release(&text);
    return rc;
}

/* Reads result.json and compares it with the accepted digest. */
static int read_result(const struct accepted *in, cJSON **result, struct err *err)
{
    enum file_kind kind = FILE_ABSENT;
    char *path = path_join(in->folder, LAYOUT_RESULT);
    shared_list_tree(in->folder); /* its artifacts are read next */
    int rc = shared_look(path, &kind, err);
    if (rc == 0) {
        rc = kind == FILE_ABSENT ? err_set(err, ERR_NOT_FOUND, LAYOUT_RESULT " is gone")
                                 : accepted_read(path, &in->digest, result, err);
    }
    if (rc == ERR_CORRUPT) {
        rc = err_set(err, ERR_CORRUPT, LAYOUT_RESULT " was changed");
    }
    free(path);
    return rc;
}

/* A result that is gone or changed does not come back by itself; one that cannot be read may. */
int input_refuse(const char *task, struct err *err)
{
    struct err why = *err;
    if (err->code == ERR_IO || err->code == ERR_NO_SPACE) {
        return err_set(err, why.code,
                       "the accepted result of %.80s cannot be read (%.100s): make its disk "
                       "readable and `resume`",
                       task, why.msg);
    }
    return err_set(err, ERR_LOCK,
                   "the accepted result of %.80s is not what it was: %.100s; put it back and "
                   "`resume`, or `preregctl lost` it",
                   task, why.msg);
}

/* By the stage's name, which a result uses for its inputs. */
const struct accepted *input_find(const struct accepted_list *list, const char *stage)
{
    for (size_t i = 0; i + (list->has_work ? 1 : 0) < list->n; i++) {
        if (strcmp(list->items[i].stage, stage) == 0) {
            return &list->items[i];
        }
    }
    return NULL;
}

const struct accepted *input_work(const struct accepted_list *list)
{
    return list != NULL && list->has_work ? &list->items[list->n - 1] : NULL;
}

int input_read(const struct accepted *in, cJSON **result, struct err *err)
{
    *result = NULL;
    return read_result(in, result, err) == 0 ? 0 : input_refuse(in->task, err);
}
