/* A rerun file of anybody's, made again as verify does it, over a result that was accepted: what
 * was made is well-formed, and made again once more it is the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/rerun_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char accepted_text[] = "{\"metrics\":{\"acc\":{\"value\":0.5,\"n\":100},\"late\":{"
                                    "\"value\":null,\"why\":\"x\"},\"none\":"
                                    "null},\"artifacts\":[{\"path\":\"w\",\"sha256\":"
                                    "\"000000000000000000000000000000000000000000000000000000000000"
                                    "00aa\"}],\"facts\":{\"threads\":1,"
                                    "\"blas\":\"B, core Haswell\"}}";

static struct plan_stage stages[] = {{.name = "train"}, {.name = "score"}};
static const struct plan_program program = {.stages = stages, .n_stages = ARRAY_LEN(stages)};

static void add_stage(cJSON *made, const cJSON *stage, const cJSON *accepted)
{
    struct rerun_stage s = {.digest = "d"};
    struct err err = {0};
    cJSON *again = NULL;
    if (rerun_file_stage(stage, &s, &again, &err) == 0) {
        cJSON *place = rerun_environment(accepted, NULL);
        s.accepted = (struct rerun_side){accepted, place};
        rerun_file_add(made, &s);
        cJSON_Delete(place);
    } else if (err.msg[0] == '\0') {
        abort();
    }
    cJSON_Delete(again);
}

/* NULL when it is no rerun file. */
static cJSON *make_again(const cJSON *file, const cJSON *accepted)
{
    struct rerun_head head;
    struct err err;
    const cJSON *stage;
    if (rerun_file_head(file, &head, &err) != 0) {
        return NULL;
    }
    cJSON *made = rerun_file_begin(&head);
    cJSON_ArrayForEach(stage, json_member(file, "stages"))
    {
        add_stage(made, stage, accepted);
    }
    rerun_file_end(made, &program);
    return made;
}

static void check(const cJSON *made, const cJSON *accepted)
{
    struct strbuf a = STRBUF_INIT;
    struct strbuf b = STRBUF_INIT;
    struct err err;
    cJSON *read = NULL;
    if (json_pretty(made, &a, &err) != 0 || json_parse(a.buf, a.len, &read, &err) != 0) {
        abort();
    }
    cJSON *again = make_again(read, accepted);
    if (again == NULL || json_pretty(again, &b, &err) != 0 || a.len != b.len ||
        memcmp(a.buf, b.buf, a.len) != 0) {
        abort();
    }
    cJSON_Delete(again);
    cJSON_Delete(read);
    strbuf_release(&a);
    strbuf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cJSON *file = NULL;
    cJSON *accepted = NULL;
    struct err err;
    if (json_parse(accepted_text, strlen(accepted_text), &accepted, &err) != 0) {
        abort();
    }
    if (json_parse((const char *)data, size, &file, &err) == 0) {
        cJSON *made = make_again(file, accepted);
        if (made != NULL) {
            check(made, accepted);
        }
        cJSON_Delete(made);
    }
    cJSON_Delete(file);
    cJSON_Delete(accepted);
    return 0;
}
