/* Who rewrites what follows from what he changed: the journal's chain, the subjects of the
 * statement, the sums. */
#ifndef TESTS_UNIT_CTL_RECEIPT_FORGER_H
#define TESTS_UNIT_CTL_RECEIPT_FORGER_H

#include "base/err.h"
#include "base/strbuf.h"

/* Numbers and hashes of the rows, each in canonical form. A line that is no object is left as it
 * is, and the chain goes on after it. */
void forge_chain(struct strbuf *journal);

/* statement.json's subjects and SHA256SUMS of a receipt's folder. A statement that cannot be read
 * is left as it is. */
int forge_sums(const char *folder, struct err *err) MUST_CHECK;

#endif
