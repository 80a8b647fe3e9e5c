/*
 * config.json of Hugging Face's LlamaForCausalLM and MixtralForCausalLM, to and from the shape of a
 * model. Both directions refuse by name what the other side cannot express: reading, anything that
 * would make the model compute something else; writing, what docs/models.md has beyond the two.
 */
#ifndef WORKER_MODEL_FORMATS_HF_CONFIG_H
#define WORKER_MODEL_FORMATS_HF_CONFIG_H

#include <cjson/cJSON.h>

#include "base/err.h"
#include "worker/model/config.h"

#define HF_FILE_CONFIG "config.json"

/* ERR_REFUSED when the two architectures have no such model, with every reason. */
int hf_config_check(const struct model_config *cfg, struct err *err) MUST_CHECK;
/* The members of config.json; end_of_text < 0: no tokenizer is known. After hf_config_check(). */
void hf_config_put(const struct model_config *cfg, int64_t end_of_text, cJSON *obj);

/* ERR_REFUSED for another architecture or a feature the worker's model lacks, ERR_CORRUPT for a
 * file that is not such a config. */
int hf_config_get(const cJSON *obj, struct model_config *cfg, struct err *err) MUST_CHECK;

#endif
