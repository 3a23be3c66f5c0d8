// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace vitrine::base {

/// The smallest of ascending values that at least this share (0 to 1) of them do not exceed; nothing of no values.
inline std::optional<double> percentile(const std::vector<double>& ascending, double share) {
    if (ascending.empty()) {
        return std::nullopt;
    }
    const auto rank = static_cast<std::size_t>(std::max(1.0, std::ceil(share * static_cast<double>(ascending.size()))));
    return ascending[std::min(rank, ascending.size()) - 1];
}

/// The lower median; 0 of no values.
inline double median(std::vector<double> values) {
    std::ranges::sort(values);
    return percentile(values, 0.5).value_or(0);
}

} // namespace vitrine::base
