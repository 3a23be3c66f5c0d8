// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/expert_config.h"

#include <fmt/format.h>

namespace vitrine::engine {

namespace {

// They keep lists of tensors small.
constexpr std::int64_t kMaxExperts = 1 << 13;
constexpr std::int64_t kMaxExpertsInAll = 1 << 17;

} // namespace

void parseExperts(ConfigReader& reader, const ExpertKeys& keys, std::int64_t defaultExperts,
                  std::int64_t defaultPerToken, ModelConfig& config) {
    const std::optional<std::int64_t> local = reader.optionalInteger(keys.olderCount, 0, kMaxExperts);
    const std::optional<std::int64_t> experts = reader.optionalInteger(keys.count, 0, kMaxExperts);
    if (local && experts && *local != *experts) {
        reader.bad(keys.count, fmt::format("is {}, but {} is {}", *experts, keys.olderCount, *local));
    }
    config.experts = local ? *local : experts.value_or(defaultExperts);
    if (config.experts * static_cast<std::int64_t>(config.layers.size()) > kMaxExpertsInAll) {
        reader.bad(local ? keys.olderCount : keys.count,
                   fmt::format("{} experts in each of {} layers are more than {} in all", config.experts,
                               config.layers.size(), kMaxExpertsInAll));
    }
    const std::int64_t older = reader.optionalInteger("experts_per_token", 1, kMaxExperts).value_or(defaultPerToken);
    config.expertsPerToken = reader.integer("num_experts_per_tok", older, 1, kMaxExperts);
    if (config.experts > 0 && config.expertsPerToken > config.experts) {
        reader.bad("num_experts_per_tok", fmt::format("{} of {} experts", config.expertsPerToken, config.experts));
    }
}

} // namespace vitrine::engine
