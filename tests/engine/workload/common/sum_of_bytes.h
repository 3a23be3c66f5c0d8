// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

namespace vitrine::engine::test {

/// The sum of {"weights": bytes, "kv_cache": bytes, ...}.
inline std::uint64_t sumOfBytes(const nlohmann::json& categories) {
    std::uint64_t total = 0;
    for (const auto& [name, bytes] : categories.items()) {
        total += bytes.get<std::uint64_t>();
    }
    return total;
}

} // namespace vitrine::engine::test
