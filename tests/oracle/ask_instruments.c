/* The instruments' mathematics for tests/oracle/test_statistics.py: a JSON array of requests in, a
 * JSON array of answers out.
 *
 *   ask_instruments REQUESTS.json > ANSWERS.json      (tests/unit/truthtable/instruments/ask.h)
 */
#include <stdio.h>

#include "tests/unit/truthtable/instruments/ask.h"

#define MOST_BYTES (256U << 20)

static int answer(const char *path, struct strbuf *text, struct err *err)
{
    cJSON *requests = NULL;
    cJSON *answers = json_array();
    const cJSON *request;
    int rc = json_read_file(path, MOST_BYTES, &requests, err);
    cJSON_ArrayForEach(request, requests)
    {
        cJSON *one = instruments_ask(request);
        if (one == NULL && rc == 0)
            rc = err_set(err, ERR_SYNTAX, "a request without a known op");
        json_push(answers, one != NULL ? one : json_object());
    }
    if (rc == 0)
        rc = json_line(answers, text, err);
    cJSON_Delete(answers);
    cJSON_Delete(requests);
    return rc;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    struct strbuf text;
    if (argc != 2) {
        (void)fprintf(stderr, "usage: ask_instruments REQUESTS.json\n");
        return 2;
    }
    strbuf_init(&text);
    int rc = answer(argv[1], &text, &err);
    if (rc == 0)
        puts(text.buf);
    else
        (void)fprintf(stderr, "ask_instruments: %s\n", err.msg);
    strbuf_release(&text);
    return rc == 0 ? 0 : 1;
}
