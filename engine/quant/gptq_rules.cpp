// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/gptq_rules.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/quoted_text.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;

/// What a rule may say of a module and change nothing: what holds for the others, or how rounding went.
void checkSameNumbers(const QuantizationFields& fields, const json& rule, const std::string& pattern) {
    for (const char* field : {"bits", "group_size", "sym", "desc_act", "zero_point", "format", "checkpoint_format",
                              "lm_head", "pack_dtype", "adapter", "rotation"}) {
        const auto found = rule.find(field);
        if (found == rule.end()) {
            continue;
        }
        const json* whole = fields.find(field);
        if (whole == nullptr ? !found->is_null() : *found != *whole) {
            fields.unsupported("dynamic", fmt::format("the rule {} has another {} than the model; modules with "
                                                      "numbers of their own are not supported",
                                                      base::quotedText(pattern), field));
        }
    }
}

void readDynamic(const QuantizationFields& fields, Quantization& out) {
    const json* dynamic = fields.find("dynamic");
    if (dynamic == nullptr) {
        return;
    }
    if (!dynamic->is_object()) {
        fields.bad("dynamic", "must be an object from patterns to rules");
    }
    for (const auto& [pattern, rule] : dynamic->items()) {
        if (pattern.starts_with("-:")) {
            out.ignored.push_back("re:" + pattern.substr(2));
            continue;
        }
        if (!rule.is_object()) {
            fields.bad("dynamic", fmt::format("the rule {} must be an object", base::quotedText(pattern)));
        }
        checkSameNumbers(fields, rule, pattern);
    }
}

} // namespace

void readGptqRules(const QuantizationFields& fields, Quantization& out) {
    readDynamic(fields, out);
    fields.requireText("pack_dtype", "int32", "int32");
    fields.requireNothing("adapter", "weights with an adapter beside them are not supported");
    fields.requireNothing("rotation", "weights that are rotated are not supported");
    fields.requireNothing("is_marlin_format", "tensors in the order of the marlin kernels are not supported");
    fields.harmless({"quant_method",
                     "meta",
                     "backend",
                     "tokenizer",
                     "dataset",
                     "batch_size",
                     "pad_token_id",
                     "model_seqlen",
                     "max_input_length",
                     "damp_percent",
                     "damp_auto_increment",
                     "static_groups",
                     "true_sequential",
                     "act_group_aware",
                     "mse",
                     "method",
                     "hyb_act", // the g_idx of the files counts
                     "v2",
                     "v2_alpha",
                     "block_name_to_quantize",
                     "module_name_preceding_first_block",
                     "modules_in_block_to_quantize", // the tensors say which are packed
                     "cache_block_outputs",
                     "use_cuda_fp16",
                     "use_exllama",
                     "disable_exllama",
                     "exllama_config",
                     "model_name_or_path",
                     "model_file_base_name",
                     "quantizer",
                     "do_fuse",
                     "fuse_max_seq_len",
                     "modules_to_fuse"});
}

} // namespace vitrine::engine
