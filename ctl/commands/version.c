/*
 * version: the version of this build, as text or JSON. The same version is in every lock ("tool")
 * and receipt that this build makes.
 */
#include <stdio.h>

#include "base/json/json.h"
#include "base/terminal.h"
#include "ctl/ctl.h"
#include "ctl/text/out.h"

int cmd_version(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    if (!o->json) {
        terminal_printf(stdout, "preregctl %s\n", PREREGD_VERSION);
        return 0;
    }
    cJSON *answer = json_object();
    json_put_string(answer, "name", "preregctl");
    json_put_string(answer, "version", PREREGD_VERSION);
    int rc = out_json(answer, err);
    cJSON_Delete(answer);
    return rc;
}
