/*
 * GPT-2's byte-level alphabet: every byte is written as one printable character, so that a
 * vocabulary of byte strings is a list of words. 0x21-0x7e, 0xa1-0xac and 0xae-0xff map to
 * themselves (as code points), the 68 others to U+0100 and following, in order.
 */
#ifndef WORKER_DATA_TOKENIZER_BYTELEVEL_H
#define WORKER_DATA_TOKENIZER_BYTELEVEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

/* Appends the bytes as characters of the alphabet. */
void bytelevel_write(const void *bytes, size_t len, struct strbuf *out);
/* Appends the bytes of the text's characters; false, with nothing appended, when a character is
 * outside the alphabet. */
bool bytelevel_read(const char *text, size_t len, struct strbuf *out);

#endif
