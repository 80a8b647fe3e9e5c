/* VERIFY.md: how a reader can check a receipt, by hand or with preregctl. */
#ifndef CTL_RECEIPT_VERIFY_VERIFY_MD_H
#define CTL_RECEIPT_VERIFY_VERIFY_MD_H

#include "base/strbuf.h"
#include "ctl/receipt/parts.h"

extern const char verify_md_guide[]; /* guide.md */

/* Appends the whole file: a summary of this receipt, then the guide. */
void verify_md(struct strbuf *out, const struct receipt *r);

#endif
