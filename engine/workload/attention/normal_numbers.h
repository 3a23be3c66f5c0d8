// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Makes many normally distributed numbers fast. 16 bits of Philox choose one of 65,536 quantiles of the normal
// distribution (mean 0, variance 1, all values between -4.3 and 4.3). Number i depends only on the seed, the stream and
// i, and not on the threads.

#include <cstdint>
#include <span>

namespace vitrine::engine {

/// How many numbers one draw of Philox gives.
inline constexpr std::int64_t kNormalDraw = 8;

/// Writes the numbers from `begin` to `begin` + out.size() - 1. REQUIRES that `begin` is a multiple of kNormalDraw. May
/// be called on any thread.
void normalNumbers(std::uint64_t seed, std::uint32_t stream, std::int64_t begin, std::span<float> out);

} // namespace vitrine::engine
