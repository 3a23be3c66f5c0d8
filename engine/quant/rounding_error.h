// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a packed weight differs from the values that it was made of. Sums are made in double and in a fixed order, so
// they do not depend on the number of threads.

#include <cstdint>
#include <optional>
#include <span>

namespace vitrine::engine {

struct RoundingError {
    std::int64_t count = 0;
    double squaredError = 0;   ///< sum of (x - y)^2
    double squaredValues = 0;  ///< sum of x^2
    double squaredRounded = 0; ///< sum of y^2
    double products = 0;       ///< sum of x y
    double largest = 0;        ///< largest |x - y|

    void add(const RoundingError& other);

    double meanSquare() const; ///< 0 without values
    /// 10 log10(sum of x^2 / sum of (x - y)^2), in dB; nothing where there is no error, or no signal.
    std::optional<double> signalToNoise() const;
    /// The cosine of the angle between x and y; nothing where one of them is zero.
    std::optional<double> cosine() const;
};

/// Of values x and what became of them. REQUIRES spans of the same length.
RoundingError roundingError(std::span<const float> values, std::span<const float> rounded);

} // namespace vitrine::engine
