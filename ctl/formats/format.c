/* The table of formats, and the frame of an export: verify, read, write into a folder beside the
 * target, rename. */
#include "ctl/formats/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/formats/writers.h"
#include "ctl/receipt/verify/verify.h"

const char *const format_names[] = {
    "hf-eval-results", "every-eval-ever", "neurips-checklist", "osf", "croissant",
    "ro-crate",        "mlflow",          "tensorboard"};
const size_t format_n_names = ARRAY_LEN(format_names);

/* In the order of the names. */
static format_writer *const writers[ARRAY_LEN(format_names)] = {write_hf_eval_results,
                                                                write_every_eval_ever,
                                                                write_neurips_checklist,
                                                                write_osf,
                                                                write_croissant,
                                                                write_ro_crate,
                                                                write_mlflow,
                                                                write_tensorboard};

static size_t find_format(const char *name)
{
    size_t i = 0;
    while (i < format_n_names && strcmp(format_names[i], name) != 0) {
        i++;
    }
    return i;
}

int format_check_name(const char *name, struct err *err)
{
    if (find_format(name) < format_n_names) {
        return 0;
    }
    const char *near = text_nearest(name, format_names, format_n_names);
    return err_set(err, ERR_USAGE,
                   "--format: no format \"%.40s\"%s%s%s (`preregctl help export` lists them)", name,
                   near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                   near != NULL ? "?" : "");
}

/* Readers of a format do not see the receipt: what does not follow must not get there. */
static int check_receipt(const char *folder, struct err *err)
{
    const struct verify_spec spec = {.folder = folder};
    struct verify_answer answer;
    int rc = receipt_verify(&spec, &answer);
    if (rc != 0) {
        rc = err_join(&answer.fault, err);
        (void)err_wrap(err, "the receipt does not follow");
    }
    verify_answer_release(&answer);
    return rc;
}

/* In a folder beside the target, which is renamed in the end and removed after a failure. */
static int make_folder(const struct receipt_source *s, const struct format_spec *spec,
                       struct format_made *made, struct err *err)
{
    struct err ignored;
    char *temp = xasprintf("%s.XXXXXX", made->folder);
    char *parent = path_folder(made->folder);
    int rc = dir_make(parent, 0755, err);
    if (rc == 0 && mkdtemp(temp) == NULL) {
        rc = err_set_errno(err, errno, "make a folder in %s", parent);
        goto out;
    }
    if (rc != 0) {
        goto out;
    }
    const struct format_output output = {.folder = temp, .notes = made->notes};
    rc = writers[find_format(spec->format)](s, &output, err);
    if (rc == 0 && chmod(temp, 0755) != 0) {
        rc = err_set_errno(err, errno, "open %s to readers", temp);
    }
    rc = rc == 0 ? dir_publish(temp, made->folder, false, err) : rc;
    if (rc != 0 && dir_remove(temp, &ignored) != 0) {
        (void)err_wrap(err, "%s is left behind", temp);
    }
out:
    free(parent);
    free(temp);
    return rc;
}

int format_export(const struct format_spec *spec, struct format_made *made, struct err *err)
{
    struct receipt_source s = {.files = {.fd = -1}};
    *made = (struct format_made){.notes = json_array()};
    int rc = check_receipt(spec->receipt, err);
    if (rc == 0) {
        rc = source_open(&s, spec->receipt, spec->program_folder, err);
    }
    if (rc == 0) {
        char *out = path_absolute(NULL, spec->out);
        made->folder = xasprintf("%s/%s-%s", out, s.id, spec->format);
        free(out);
        rc = file_kind_at(made->folder) != FILE_ABSENT
                 ? err_set(err, ERR_EXISTS, "%s is there: nothing is replaced", made->folder)
                 : make_folder(&s, spec, made, err);
    }
    source_release(&s);
    return rc;
}

void format_made_release(struct format_made *made)
{
    free(made->folder);
    cJSON_Delete(made->notes);
    *made = (struct format_made){0};
}
