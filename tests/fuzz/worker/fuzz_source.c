/* Documents from arbitrary files: the first byte chooses the kind (text, JSONL, shard), the rest is
 * the file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "worker/data/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Without the syncs of file_write_atomic(), which would take all the time. */
static void put_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *f = fopen(path, "wb");

    if (f == NULL || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        abort();
}

static void read_as(const char *path, const uint8_t *data, size_t size)
{
    struct tokenizer *tok = NULL;
    struct corpus c;
    struct err err = {0};

    corpus_init(&c);
    put_file(path, data, size);
    if (tokenizer_open(TOKENIZER_BYTES, &tok, &err) < 0)
        abort();
    if (source_read(path, tok, &c, &err) == 0) {
        size_t sum = 0;
        for (size_t i = 0; i < c.n_documents; i++)
            sum += c.documents[i].n_tokens;
        if (sum != c.n_tokens)
            abort();
    }
    corpus_release(&c);
    tokenizer_free(tok);
    (void)unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];

    if (size == 0)
        return 0;
    (void)snprintf(path, sizeof(path), "/dev/shm/fuzz-source-%d%s", (int)getpid(),
                   data[0] % 2 == 0 ? ".jsonl" : ".txt");
    read_as(path, data + 1, size - 1);
    return 0;
}
