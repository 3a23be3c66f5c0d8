// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <nlohmann/json.hpp>

#include "engine/workload/common/run_setup.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::engine {

void addKvMetrics(nlohmann::json& metrics, const ModelConfig& config, const KvCacheOptions& options) {
    KvCacheOptions geometry = options;
    if (geometry.kind == KvCacheKind::Static) {
        geometry.kind = KvCacheKind::Dynamic; // that of static caches differs in page sizes alone
    }
    nlohmann::json groups = nlohmann::json::array();
    for (const KvGroup& group : kvGroups(config, geometry)) {
        nlohmann::json row = {{"name", group.name},
                              {"layers", group.layers},
                              {"window", group.window},
                              {"bytes_per_token", group.tokenBytes}};
        if (options.kind != KvCacheKind::Static) {
            row["page_tokens"] = group.pageTokens;
        }
        groups.push_back(std::move(row));
    }
    metrics[result::kKvCache.key] = {{"dtype", kernels::dtypeName(options.dtype)},
                                     {"kind", options.kind == KvCacheKind::Static  ? "static"
                                              : options.kind == KvCacheKind::Paged ? "paged"
                                                                                   : "dynamic"},
                                     {"head_dim", config.headDim},
                                     {"context_limit", contextLimit(config)},
                                     {"groups", std::move(groups)}};
}

void reportKvMetrics(const Run& run, const ModelConfig& config, const KvCacheOptions& options) {
    addKvMetrics(run.metrics, config, options);
    if (run.sinks.fact) {
        run.sinks.fact("kv_cache", run.metrics[result::kKvCache.key]);
    }
}

} // namespace vitrine::engine
