// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/rounding_error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace vitrine::engine {
namespace {

constexpr std::size_t kSums = 4;

} // namespace

void RoundingError::add(const RoundingError& other) {
    count += other.count;
    squaredError += other.squaredError;
    squaredValues += other.squaredValues;
    squaredRounded += other.squaredRounded;
    products += other.products;
    largest = std::max(largest, other.largest);
}

double RoundingError::meanSquare() const {
    return count == 0 ? 0 : squaredError / static_cast<double>(count);
}

std::optional<double> RoundingError::signalToNoise() const {
    if (squaredError == 0 || squaredValues == 0) {
        return std::nullopt;
    }
    return 10 * std::log10(squaredValues / squaredError);
}

std::optional<double> RoundingError::cosine() const {
    const double lengths = std::sqrt(squaredValues) * std::sqrt(squaredRounded);
    return lengths == 0 ? std::nullopt : std::optional(std::min(1.0, products / lengths));
}

RoundingError roundingError(std::span<const float> values, std::span<const float> rounded) {
    RoundingError out;
    out.count = static_cast<std::int64_t>(values.size());
    // Every kSums-th value goes into the same sum, so compilers make vectors of neighbours.
    using Sums = std::array<double, kSums>;
    Sums squaredError{}, squaredValues{}, squaredRounded{}, products{}, largest{};
    const auto take = [&](std::size_t lane, double x, double y) {
        const double error = x - y, size = std::abs(error);
        squaredError[lane] += error * error;
        squaredValues[lane] += x * x;
        squaredRounded[lane] += y * y;
        products[lane] += x * y;
        largest[lane] = size > largest[lane] ? size : largest[lane];
    };
    const std::size_t whole = values.size() / kSums * kSums;
    const float *const before = values.data(), *const after = rounded.data();
    for (std::size_t i = 0; i < whole; i += kSums) {
        for (std::size_t lane = 0; lane < kSums; ++lane) {
            take(lane, before[i + lane], after[i + lane]);
        }
    }
    for (std::size_t i = whole; i < values.size(); ++i) {
        take(i - whole, before[i], after[i]);
    }
    const auto sum = [](const Sums& lanes) { return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]); };
    out.squaredError = sum(squaredError);
    out.squaredValues = sum(squaredValues);
    out.squaredRounded = sum(squaredRounded);
    out.products = sum(products);
    out.largest = std::ranges::max(largest);
    return out;
}

} // namespace vitrine::engine
