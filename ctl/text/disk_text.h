/* The answers of `programs` and `disk` (docs/rpc.md) as text. Pure. */
#ifndef CTL_TEXT_DISK_TEXT_H
#define CTL_TEXT_DISK_TEXT_H

#include "ctl/text/out.h"

void programs_text(struct strbuf *sb, const struct term *t, const cJSON *answer);
void disk_text(struct strbuf *sb, const struct term *t, const cJSON *answer);

/* "1.2 GiB", "340 KiB", "0"; what `du -h` would print, spelled out. */
void disk_size_text(struct strbuf *sb, int64_t bytes);

#endif
