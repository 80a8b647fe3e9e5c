/* The writers of formats, one file each; private to the table of formats (format.c). Each writes
 * what the source says into the output's folder, invents nothing, and notes what it left out. */
#ifndef CTL_FORMATS_WRITERS_H
#define CTL_FORMATS_WRITERS_H

#include "ctl/formats/output.h"
#include "ctl/formats/source.h"

typedef int format_writer(const struct receipt_source *s, const struct format_output *out,
                          struct err *err);

format_writer write_hf_eval_results;
format_writer write_every_eval_ever;
format_writer write_neurips_checklist;
format_writer write_osf;
format_writer write_croissant;
format_writer write_ro_crate;
format_writer write_mlflow;
format_writer write_tensorboard;

#endif
