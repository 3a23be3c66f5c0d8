// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/given_experts.h"

#include "base/error.h"

namespace vitrine::engine {

bool GivenExperts::has(std::int64_t token) const {
    const std::span<const std::uint16_t> all = record(token);
    for (std::size_t first = 0; first < all.size(); first += static_cast<std::size_t>(k)) {
        if (all[first] != kNone) {
            return true;
        }
    }
    return false;
}

void GivenExperts::append(std::int64_t tokens, const GivenExperts& more, std::int64_t added) {
    if (more.empty()) {
        addNone(added);
        return;
    }
    if (empty()) {
        layers = more.layers;
        k = more.k;
        addNone(tokens);
    }
    if (layers != more.layers || k != more.k) {
        throw base::Internal("training batches with experts of different models are put together");
    }
    ids.insert(ids.end(), more.ids.begin(), more.ids.end());
}

} // namespace vitrine::engine
