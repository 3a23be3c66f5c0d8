// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/python/suggestion.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace vitrine::engine {

std::string suggestion(std::string_view name, const std::vector<std::string_view>& known) {
    // Levenshtein's distance; a third of the name may differ.
    std::string_view best;
    std::size_t least = std::max<std::size_t>(1, name.size() / 3) + 1;
    for (const std::string_view other : known) {
        if (other.size() > name.size() + least || name.size() > other.size() + least || other == name ||
            name.size() > 64) {
            continue;
        }
        std::vector<std::size_t> row(other.size() + 1);
        std::iota(row.begin(), row.end(), std::size_t{0});
        for (std::size_t i = 0; i < name.size(); ++i) {
            std::size_t diagonal = row[0]++;
            for (std::size_t j = 0; j < other.size(); ++j) {
                const std::size_t change = diagonal + (name[i] == other[j] ? 0 : 1);
                diagonal = row[j + 1];
                row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
            }
        }
        if (row.back() < least) {
            least = row.back();
            best = other;
        }
    }
    return best.empty() ? std::string() : fmt::format("; did you mean '{}'?", best);
}

} // namespace vitrine::engine
