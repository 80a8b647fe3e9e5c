/*
 * worker_encode TOKENIZER: for tests that compare ids with another implementation's. Standard input
 * and output are little-endian frames: in, a length in bytes (u32) and the text; out, a number of
 * ids (u32), the ids (u32 each), and then 1 when decoding them gives the text back, else 0 (u32).
 */
#include <stdbool.h>

#include "worker/data/tokenizer/tokenizer.h"

static bool read_frame(struct strbuf *text)
{
    uint32_t len = 0;

    strbuf_clear(text);
    if (fread(&len, sizeof(len), 1, stdin) != 1)
        return false;
    strbuf_reserve(text, len);
    text->len = fread(text->buf, 1, len, stdin);
    text->buf[text->len] = '\0';
    return text->len == len;
}

static void write_u32(const uint32_t *values, size_t n)
{
    if (fwrite(values, sizeof(*values), n, stdout) != n)
        exit(EXIT_ANY);
}

static int answer(const struct tokenizer *tok, const struct strbuf *text, struct err *err)
{
    struct token_list list = {0};
    struct strbuf back = STRBUF_INIT;
    int rc = tokenizer_encode(tok, text->buf, text->len, &list, err);

    if (rc == 0)
        rc = tokenizer_decode(tok, list.ids, list.n, &back, err);
    if (rc == 0) {
        uint32_t n = (uint32_t)list.n;
        uint32_t same = back.len == text->len && memcmp(back.buf, text->buf, back.len) == 0;
        write_u32(&n, 1);
        write_u32(list.ids, list.n);
        write_u32(&same, 1);
        (void)fflush(stdout);
    }
    strbuf_release(&back);
    token_list_release(&list);
    return rc;
}

int main(int argc, char **argv)
{
    struct tokenizer *tok = NULL;
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};

    if (argc != 2)
        return EXIT_USAGE;
    int rc = tokenizer_open(argv[1], &tok, &err);
    while (rc == 0 && read_frame(&text))
        rc = answer(tok, &text, &err);
    if (rc < 0)
        fprintf(stderr, "worker_encode: %s\n", err.msg);
    strbuf_release(&text);
    tokenizer_free(tok);
    return rc < 0 ? EXIT_ANY : EXIT_OK;
}
