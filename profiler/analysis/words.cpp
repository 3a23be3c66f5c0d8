// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/words.h"

#include <cctype>
#include <fmt/format.h>

#include "base/units.h"

namespace vitrine::profiler {

std::string signedBytes(std::int64_t bytes) {
    const std::uint64_t size =
        bytes < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(bytes) : static_cast<std::uint64_t>(bytes);
    return (bytes > 0 ? "+" : bytes < 0 ? "\u2212" : "\u00b1") + base::formatBytes(size);
}

std::string percent(double share) {
    return fmt::format("{:.1f} %", 100 * share);
}

std::string capitalised(std::string text) {
    if (!text.empty()) {
        text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    }
    return text;
}

} // namespace vitrine::profiler
