// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/attention/normal_numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/philox.h"

namespace vitrine::engine {

namespace {

constexpr std::size_t kHalf = 1 << 15;

/// What a normally distributed number exceeds with this probability, by Newton's steps from the neighbour above.
double quantileAbove(double probability, double near) {
    double x = near;
    for (int step = 0; step < 40; ++step) {
        const double tail = 0.5 * std::erfc(x / std::numbers::sqrt2);
        const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
        const double change = (tail - probability) / density;
        x += change;
        if (std::fabs(change) < 1e-9) {
            break;
        }
    }
    return x;
}

/// Quantiles below the median, then above it: the index's high bit is the sign. Scaled so that their variance is 1.
std::vector<float> quantiles() {
    std::vector<double> above(kHalf);
    double near = 0;
    double squares = 0;
    for (std::size_t i = 0; i < kHalf; ++i) {
        near = quantileAbove(0.5 - (static_cast<double>(i) + 0.5) / (2 * kHalf), near);
        above[i] = near;
        squares += near * near;
    }
    const double scale = std::sqrt(static_cast<double>(kHalf) / squares);
    std::vector<float> made(2 * kHalf);
    for (std::size_t i = 0; i < kHalf; ++i) {
        made[i] = static_cast<float>(-scale * above[i]);
        made[i + kHalf] = static_cast<float>(scale * above[i]);
    }
    return made;
}

} // namespace

void normalNumbers(std::uint64_t seed, std::uint32_t stream, std::int64_t begin, std::span<float> out) {
    static const std::vector<float> kQuantiles = quantiles();
    const base::PhiloxKey key = base::philoxKey(seed, stream);
    for (std::size_t i = 0; i < out.size(); i += kNormalDraw) {
        const std::array<std::uint32_t, 4> words =
            base::philox4x32(key, (static_cast<std::uint64_t>(begin) + i) / kNormalDraw, 0);
        std::array<float, kNormalDraw> values;
        for (std::size_t j = 0; j < words.size(); ++j) {
            values[2 * j] = kQuantiles[words[j] & 0xFFFFU];
            values[2 * j + 1] = kQuantiles[words[j] >> 16];
        }
        std::copy_n(values.begin(), std::min(out.size() - i, values.size()),
                    out.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

} // namespace vitrine::engine
