// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sizes, rates and times as people read and write them. Bytes print in binary units, rates in SI units.

#include <cstdint>
#include <string>
#include <string_view>

namespace vitrine::base {

/// Reads "80GiB", "16 GB", "512M", "1073741824". GiB is 2^30, GB is 10^9; a bare K/M/G/T means the binary unit.
/// Throws BadInput that names `field` when the text is no size or does not fit 63 bits.
std::uint64_t parseBytes(std::string_view text, std::string_view field);

/// "12.83 GiB", "640 MiB", "91.1 MiB", "412.0 KiB", "17 B": GiB 2 decimals, MiB and KiB 1 (MiB 0 from 100 up).
std::string formatBytes(std::uint64_t bytes);

/// "39,535,509,504"
std::string formatGrouped(std::int64_t value);

/// "37.0 GB/s"
std::string formatBytesPerSecond(double bytesPerSecond);

/// ns, µs, ms or s with three digits: "41.2 ms"
std::string formatDuration(std::int64_t nanoseconds);

} // namespace vitrine::base
