/*
 * Making a receipt from a program's folder, which is only read: STATE/programs/<id>, with or
 * without a daemon serving it, or the folder of an imported program. What was made is verified
 * before it gets its name; it is there whole or not at all.
 *
 * The same folder gives the same bytes: nothing in a receipt depends on when it was made.
 */
#ifndef CTL_RECEIPT_EXPORT_H
#define CTL_RECEIPT_EXPORT_H

#include "ctl/receipt/verify/verify.h"
#include "prereg/program/release.h"

/* What to export and where. All borrowed. */
struct export_spec {
    const char *program_folder;
    const char *out; /* the folder that the receipt is put into */
    bool with_host;  /* names of hosts stay as they are */
    bool with_items; /* of every accepted result that names some */
};

/* What was made; to be released. */
struct export_made {
    char *folder;          /* out/<name>-<digest8>-receipt */
    char *tar;             /* the same with ".tar" */
    char sums[65];         /* the SHA-256 of SHA256SUMS: the receipt in one number */
    bool verdict_is_early; /* as in struct verify_answer */
};

/* ERR_REFUSED: scores are sealed, or no verdict was computed yet. ERR_EXISTS: a receipt is there,
 * perhaps with signatures. ERR_LOCK, ERR_CORRUPT: the files in the folder do not follow from
 * each other, with the first fault in the message. *made is always valid to release. */
int receipt_export(const struct export_spec *spec, struct export_made *made,
                   struct err *err) MUST_CHECK;
void export_made_release(struct export_made *made);

/* Packs a receipt's folder into tar_path, in place of what is there. */
int receipt_pack(const char *folder, const char *tar_path, struct err *err) MUST_CHECK;

/* Adds signatures/<fingerprint>.sig over SHA256SUMS to a receipt that verifies, and packs the
 * tar beside it again when there is one; in a role <role>-<fingerprint>.sig, in that role's
 * namespace (ROLE_NR: none). *path is the file made; the caller frees it. */
int receipt_sign(const char *folder, const char *key_path, enum release_role role, char **path,
                 struct err *err) MUST_CHECK;

#endif
