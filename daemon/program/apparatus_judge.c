/* Whether the result of an apparatus check is what the program expects, in the core's words, and
 * what the accepted result of a first run gave. */
#include <math.h>
#include <stdlib.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/program/apparatus.h"
#include "daemon/program/inputs.h"

enum core_result_check apparatus_judge(const struct plan_apparatus *a, double first,
                                       const cJSON *result, double *value,
                                       char text[APPARATUS_TEXT_SIZE])
{
    return apparatus_judged(a, first, result, value, text) ? RESULT_VALID : RESULT_UNEXPECTED;
}

int apparatus_first_value(const struct plan_apparatus *a, const char *folder,
                          const struct digest *digest, double *out, struct err *err)
{
    cJSON *result = NULL;
    char *path = path_join(folder, LAYOUT_RESULT);
    int rc = accepted_read(path, digest, &result, err);
    *out = rc == 0 ? apparatus_value(a, result) : (double)NAN;
    cJSON_Delete(result);
    free(path);
    return rc == 0 ? 0 : err_wrap(err, "what the first run measured");
}
