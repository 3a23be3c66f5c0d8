// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Many normally distributed numbers, fast: 16 bits of Philox pick one of 65,536 quantiles of the normal distribution
// (mean 0, variance 1, at most 4.3 from 0). Number i depends on the seed, the stream and i alone, whatever the threads.

#include <cstdint>
#include <span>

namespace vitrine::engine {

/// Numbers of one draw.
inline constexpr std::int64_t kNormalDraw = 8;

/// Numbers begin .. begin + out.size(); `begin` is a multiple of kNormalDraw. Any thread.
void normalNumbers(std::uint64_t seed, std::uint32_t stream, std::int64_t begin, std::span<float> out);

} // namespace vitrine::engine
