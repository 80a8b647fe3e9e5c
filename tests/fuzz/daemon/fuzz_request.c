/* A request line from anyone: either refused, or one that reads the same when written again. */
#include <stdint.h>
#include <stdlib.h>

#include "daemon/rpc/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err;
    struct rpc_request r;
    struct rpc_request again;
    cJSON *message = NULL;
    cJSON *copy = NULL;
    if (rpc_request_parse((const char *)data, size, &message, &r, &err) != 0) {
        if (message != NULL || r.params != NULL) {
            abort();
        }
        return 0;
    }
    struct strbuf text = STRBUF_INIT;
    rpc_write_request(&text, r.id, rpc_method_name(r.method), r.params);
    if (text.len > 1) { /* numbers beyond what we write are dropped with the whole */
        if (rpc_request_parse(text.buf, text.len - 1, &copy, &again, &err) != 0 ||
            again.method != r.method || again.id != r.id) {
            abort();
        }
    }
    cJSON_Delete(copy);
    cJSON_Delete(message);
    strbuf_release(&text);
    return 0;
}
