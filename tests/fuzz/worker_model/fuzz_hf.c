/* Arbitrary text as config.json: what is taken is a shape that the model's own check takes. */
#include <stdint.h>
#include <stdlib.h>

#include "base/json/json.h"
#include "worker/model/formats/hf_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_back(const struct model_config *cfg)
{
    struct model_config again;
    struct err err = {0};
    cJSON *obj = json_object();

    if (hf_config_check(cfg, &err) != 0)
        abort();
    hf_config_put(cfg, -1, obj);
    if (hf_config_get(obj, &again, &err) != 0 ||
        model_config_total(&again) != model_config_total(cfg) || again.context != cfg->context)
        abort();
    cJSON_Delete(obj);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model_config cfg;
    struct err err = {0};
    cJSON *obj = NULL;

    if (json_parse_lax((const char *)data, size, &obj, &err) == 0 &&
        hf_config_get(obj, &cfg, &err) == 0) {
        if (model_config_total(&cfg) < 1)
            abort();
        write_back(&cfg);
    }
    cJSON_Delete(obj);
    return 0;
}
