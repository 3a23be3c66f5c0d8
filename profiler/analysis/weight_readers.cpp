// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/weight_readers.h"

#include <array>

#include "profiler/analysis/scope_places.h"

namespace vitrine::profiler {
namespace {

struct ReadersOfPart {
    std::string_view part; ///< of a tensor's name
    std::array<std::string_view, 2> ops;
};

/// The first row whose part the name has counts. Names of ops are those of kernels/ops/fused.
constexpr std::array<ReadersOfPart, 19> kReadersInLayers{{
    {"self_attn.sinks", {"Attention"}},
    {"self_attn.o_proj", {"OutProject", "LatentOut"}},
    {"self_attn.kv_b_proj", {"LatentProject", "LatentOut"}},
    {"self_attn.kv_a_", {"LatentProject"}},
    {"self_attn.q_a_", {"LatentProject"}},
    {"self_attn.q_b_", {"LatentProject"}},
    {"self_attn.q_", {"QkvProject", "LatentProject"}},
    {"self_attn.k_", {"QkvProject"}},
    {"self_attn.v_", {"QkvProject"}},
    {"input_layernorm", {"QkvProject", "LatentProject"}},
    {"pre_feedforward_layernorm", {"DenseMlp", "Route"}},
    {"post_feedforward_layernorm", {"DenseMlp"}},
    {"mlp.experts", {"ExpertMlp"}},
    {"mlp.shared_expert", {"DenseMlp"}},
    {"mlp.router", {"Route"}},
    {"mlp.gate.", {"Route"}},
    {"mlp.gate_proj", {"DenseMlp"}},
    {"mlp.up_proj", {"DenseMlp"}},
    {"mlp.down_proj", {"DenseMlp"}},
}};

std::vector<std::string_view> opsOf(const ReadersOfPart& row) {
    return row.ops[1].empty() ? std::vector<std::string_view>{row.ops[0]}
                              : std::vector<std::string_view>(row.ops.begin(), row.ops.end());
}

} // namespace

WeightReaders weightReaders(std::string_view tensor, bool tied) {
    WeightReaders readers{layerInName(tensor), {}};
    const auto has = [&](std::string_view part) { return tensor.find(part) != std::string_view::npos; };
    if (readers.layer >= 0) {
        for (const ReadersOfPart& row : kReadersInLayers) {
            if (has(row.part)) {
                readers.ops = opsOf(row);
                break;
            }
        }
    } else if (has("embed_tokens")) {
        readers.ops =
            tied ? std::vector<std::string_view>{"Embedding", "LmHead"} : std::vector<std::string_view>{"Embedding"};
    } else if (has("lm_head") || tensor == "model.norm.weight") {
        readers.ops = {"LmHead"};
    }
    return readers;
}

} // namespace vitrine::profiler
