// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/trace.h"

namespace vitrine::base {

std::string_view categoryName(MemoryCategory category) {
    static constexpr std::array<std::string_view, kCategoryCount> kNames = {
        "untracked", "weights",   "optimizer",  "kv_cache", "gradients", "activations",
        "logits",    "workspace", "block_mask", "comm",     "other",
    };
    const auto index = static_cast<std::size_t>(category);
    return index < kNames.size() ? kNames[index] : kNames.back();
}

} // namespace vitrine::base
