// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/unused_keys.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"

namespace vitrine::engine {

void warnOfUnusedKeys(const std::string& file, std::vector<std::string> keys, std::string_view meaning) {
    constexpr std::size_t kMostShown = 40;
    if (keys.empty()) {
        return;
    }
    std::ranges::sort(keys);
    const std::size_t more = keys.size() - std::min(keys.size(), kMostShown);
    keys.resize(keys.size() - more);
    base::logWarning(fmt::format("{}: not used: {}{}; {}", file, fmt::join(keys, ", "),
                                 more == 0 ? "" : fmt::format(" and {} more", more), meaning));
}

} // namespace vitrine::engine
