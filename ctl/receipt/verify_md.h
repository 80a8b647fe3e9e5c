/* VERIFY.md: how a stranger holds a receipt against itself, by hand or with preregctl. */
#ifndef CTL_RECEIPT_VERIFY_MD_H
#define CTL_RECEIPT_VERIFY_MD_H

#include "base/strbuf.h"
#include "ctl/receipt/parts.h"

extern const char verify_md_guide[]; /* guide.md */

void verify_md(struct strbuf *out, const struct receipt *r);

#endif
