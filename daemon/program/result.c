/* Verifies a result.json: header, metrics, artifacts, and that what the worker read was locked or
 * accepted. The kind of the error decides what becomes of the task: ERR_LOCK is drift, ERR_NO_SPACE
 * a full disk, ERR_IO means unread and proves nothing, anything else is a bad result. */
#include "daemon/program/result.h"

#include <stdio.h>

#include "base/files/file.h"
#include "base/files/shared_dir.h"
#include "base/json/json.h"
#include "daemon/program/inputs.h"
#include "prereg/task/task_result.h"

/* Looks a stage up among the accepted results (task_input_find). */
static int find_input(const void *inputs, const char *stage, bool *known, cJSON **result,
                      struct err *err)
{
    const struct accepted *in = input_find(inputs, stage);
    *known = in != NULL;
    if (in == NULL) {
        return 0;
    }
    int rc = input_read(in, result, err);
    if (rc ==
        ERR_LOCK) { /* the input is gone or changed, perhaps for now only: treated as unread */
        return err->code = ERR_IO;
    }
    return rc;
}

/* Of another name of a work, the result must be that of the work. A work that is gone or changed,
 * perhaps for now only, is treated as unread. */
static int check_work(const struct accepted_list *inputs, const cJSON *result, struct err *err)
{
    const struct accepted *work = input_work(inputs);
    cJSON *of = NULL;
    if (work == NULL) {
        return task_result_check_own(result, err);
    }
    int rc = input_read(work, &of, err);
    if (rc == 0) {
        rc = task_result_check_same(result, of, &work->digest, err);
    } else if (rc == ERR_LOCK) {
        rc = err->code = ERR_IO;
    }
    cJSON_Delete(of);
    return rc;
}

/* Maps the error to a verdict; the text becomes the attempt's detail in the journal. */
void result_verify(const struct result_source *source, struct result_check *out)
{
    struct err err;
    const struct task_result expected = {.program = source->program,
                                         .lock = source->lock,
                                         .cell = source->cell,
                                         .stage = source->stage,
                                         .check = source->check,
                                         .folder = source->folder,
                                         .attempt = source->attempt,
                                         .find_input = source->inputs == NULL ? NULL : find_input,
                                         .inputs = source->inputs};
    *out = (struct result_check){.verdict = RESULT_VALID};
    shared_list_tree(source->folder); /* it may have run on another host */
    int rc = task_result_read(&expected, &out->digest, &out->json, &err);
    if (rc == 0 && (rc = check_work(source->inputs, out->json, &err)) != 0) {
        cJSON_Delete(out->json);
        out->json = NULL;
    }
    if (rc != 0) {
        out->unread = rc == ERR_IO;
        out->verdict = rc == ERR_LOCK       ? RESULT_DRIFT
                       : rc == ERR_NO_SPACE ? RESULT_NO_SPACE
                                            : RESULT_BAD;
        (void)snprintf(out->why, sizeof(out->why), "%s", err.msg);
    }
}
