// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/rounding_error.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace vitrine::engine {

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
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double x = values[i];
        const double y = rounded[i];
        const double error = x - y;
        out.squaredError += error * error;
        out.squaredValues += x * x;
        out.squaredRounded += y * y;
        out.products += x * y;
        out.largest = std::max(out.largest, std::abs(error));
    }
    return out;
}

} // namespace vitrine::engine
