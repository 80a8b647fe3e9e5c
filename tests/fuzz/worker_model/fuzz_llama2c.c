/* Arbitrary bytes as files of llama2.c: the first byte chooses checkpoint or tokenizer. A tokenizer
 * that opens gives back the text it was asked to cut. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "worker/data/tokenizer/tokenizer.h"
#include "worker/model/formats/llama2c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void cut(const struct tokenizer *tok, const char *text, size_t len)
{
    struct token_list list = {0};
    struct strbuf back = STRBUF_INIT;
    struct err err = {0};

    if (tokenizer_encode(tok, text, len, &list, &err) != 0 ||
        tokenizer_decode(tok, list.ids, list.n, &back, &err) != 0)
        abort();
    size_t space = back.len > len ? 1 : 0;
    if (back.len - space != len || memcmp(back.buf + space, text, len) != 0)
        abort();
    strbuf_release(&back);
    token_list_release(&list);
}

/* The last quarter of the input is the text. */
static void read_tokenizer(const char *path, const uint8_t *data, size_t size)
{
    struct tokenizer *tok = NULL;
    struct err err = {0};

    if (tokenizer_open(path, &tok, &err) != 0)
        return;
    cut(tok, (const char *)data + size - size / 4, size / 4);
    tokenizer_free(tok);
}

static void read_checkpoint(const char *path)
{
    struct weights w;
    struct err err = {0};

    if (llama2c_read_weights(path, &w, &err) == 0)
        weights_release(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];

    if (size == 0)
        return 0;
    (void)snprintf(path, sizeof(path), "/dev/shm/fuzz-llama2c-%d.bin", (int)getpid());
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(data + 1, 1, size - 1, f) != size - 1 || fclose(f) != 0)
        abort();
    if (data[0] % 2 == 0)
        read_checkpoint(path);
    else
        read_tokenizer(path, data + 1, size - 1);
    (void)unlink(path);
    return 0;
}
