/* What was prepared of an amendment, until it takes effect or is dropped. */
#include "daemon/program/amended.h"

#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/program/apparatus.h"
#include "prereg/amend/amend_heal.h"
#include "prereg/amend/amendment.h"
#include "state/store/apparatus.h"

void amend_prepared_free(struct amend_prepared *p)
{
    if (p != NULL) {
        cJSON_Delete(p->amendment);
        strbuf_release(&p->text);
        bundle_unref(p->bundle);
        free(p->checks);
        free(p);
    }
}
