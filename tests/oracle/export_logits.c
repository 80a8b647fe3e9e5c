/* export_logits MODEL TOKENS OUT: the logits after every prefix of the ids (uint32) in TOKENS,
 * float32, (n, vocab). */
#include <stdio.h>
#include <stdlib.h>

#include "base/files/file.h"
#include "worker/model/model.h"
#include "worker/model/score.h"

static int write_logits(struct model *m, const struct strbuf *ids, FILE *out, struct err *err)
{
    size_t n = ids->len / sizeof(uint32_t), vocab = (size_t)model_shape(m)->vocab;
    uint32_t *tokens = malloc(ids->len + sizeof(*tokens));
    float *logits = malloc(vocab * sizeof(*logits));
    int rc = 0;

    if (tokens == NULL || logits == NULL)
        abort();
    memcpy(tokens, ids->buf, n * sizeof(*tokens));
    for (size_t i = 1; rc == 0 && i <= n; i++) {
        rc = model_logits(m, tokens, i, logits, err);
        if (rc == 0 && fwrite(logits, sizeof(*logits), vocab, out) != vocab)
            rc = err_set(err, ERR_IO, "write");
    }
    free(tokens);
    free(logits);
    return rc;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    struct strbuf ids = STRBUF_INIT;
    struct model *m = NULL;
    FILE *out = NULL;

    if (argc != 4)
        return 2;
    int rc = model_open(argv[1], &m, &err);
    if (rc == 0)
        rc = file_read(argv[2], 1 << 20, &ids, &err);
    if (rc == 0 && (out = fopen(argv[3], "wb")) == NULL)
        rc = err_set(&err, ERR_IO, "%s", argv[3]);
    if (rc == 0)
        rc = write_logits(m, &ids, out, &err);
    if (out != NULL && fclose(out) != 0)
        rc = err_set(&err, ERR_IO, "%s", argv[3]);
    if (rc < 0)
        (void)fprintf(stderr, "export_logits: %s\n", err.msg);
    model_free(m);
    strbuf_release(&ids);
    return rc < 0;
}
