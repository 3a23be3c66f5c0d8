// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/step_prices.h"

#include <bit>
#include <cmath>

#include "engine/model/step.h"

namespace vitrine::engine {
namespace {

/// Caches of one range are up to a sixteenth fuller than others of it.
constexpr int kRangeBits = 4;
/// Caches that differ by less are equally full: a line through both would be steep by rounding alone.
constexpr double kLeastDifference = 1.0 / 256;

std::int64_t rangeOf(std::int64_t tokens) {
    const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(tokens)));
    const int dropped = std::max(bits - 1 - kRangeBits, 0);
    return (tokens >> dropped) + (std::int64_t{dropped} << (kRangeBits + 1));
}

std::vector<std::int64_t> kindOf(const StepInputs& stepInputs) {
    std::vector<std::int64_t> key = stepInputs.signature();
    key.push_back(stepInputs.repeatsAlike() ? 1 : 0); // those are launched in another way
    for (const StepInputs::GroupSlices& group : stepInputs.groups) {
        key.push_back(rangeOf(group.totalTokens));
    }
    return key;
}

/// Tokens that the layers read of the cache.
double tokensRead(const StepInputs& stepInputs, const KvCache& cache) {
    double sum = 0;
    for (std::size_t i = 0; i < stepInputs.groups.size(); ++i) {
        sum += static_cast<double>(stepInputs.groups[i].totalTokens) *
               static_cast<double>(cache.groups()[i].layers.size());
    }
    return sum;
}

bool apart(double a, double b) {
    return std::abs(a - b) > kLeastDifference * a;
}

} // namespace

std::optional<StepPrices::Price> StepPrices::of(const StepInputs& stepInputs, const KvCache& cache) const {
    const auto found = kinds_.find(kindOf(stepInputs));
    if (found == kinds_.end()) {
        return std::nullopt;
    }
    const Kind& kind = found->second;
    const double read = tokensRead(stepInputs, cache);
    Price out = kind.first;
    if (kind.secondRead) {
        const double slope = (kind.secondSeconds - out.seconds) / (*kind.secondRead - kind.firstRead);
        out.seconds += slope * (read - kind.firstRead);
    } else if (apart(kind.firstRead, read)) {
        return std::nullopt;
    }
    return out;
}

void StepPrices::note(const StepInputs& stepInputs, const KvCache& cache, const Price& price) {
    const double read = tokensRead(stepInputs, cache);
    const auto [place, isNew] = kinds_.try_emplace(kindOf(stepInputs), Kind{price, read, std::nullopt, 0});
    if (!isNew) {
        place->second.secondRead = read;
        place->second.secondSeconds = price.seconds;
    }
}

} // namespace vitrine::engine
