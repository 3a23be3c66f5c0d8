// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <nlohmann/json.hpp>

#include "engine/workload/run_setup.h"

namespace vitrine::engine {

void addKvMetrics(nlohmann::json& metrics, kernels::Context& context, const ModelConfig& config,
                  const KvCacheOptions& options) {
    KvCacheOptions empty = options;
    empty.kind = KvCacheKind::Dynamic; // the geometry of static caches differs in page sizes alone
    const KvCache cache(context, config, empty);
    nlohmann::json groups = nlohmann::json::array();
    for (const KvGroup& group : cache.groups()) {
        const auto elements = 2 * static_cast<std::int64_t>(group.layers.size()) * config.kvWidth();
        nlohmann::json row = {{"name", group.name},
                              {"layers", group.layers},
                              {"window", group.window},
                              {"bytes_per_token", kernels::bytesOf(options.dtype, elements)}};
        if (options.kind == KvCacheKind::Dynamic) {
            row["page_tokens"] = group.pageTokens;
        }
        groups.push_back(std::move(row));
    }
    metrics["kv_cache"] = {{"dtype", kernels::dtypeName(options.dtype)},
                           {"kind", options.kind == KvCacheKind::Static ? "static" : "dynamic"},
                           {"groups", std::move(groups)}};
}

} // namespace vitrine::engine
