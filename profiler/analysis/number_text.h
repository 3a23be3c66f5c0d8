// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Numbers as screens and reports write them, in UTF-8: the texts of base/units.h with no-break spaces, U+2212 as minus
// and an en dash for what is unknown. Exports for other programs keep to the C locale and do not use these.

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace vitrine::profiler {

std::string bytesText(std::uint64_t bytes); ///< "12.83 GiB"
std::string bytesText(std::optional<std::uint64_t> bytes);
std::string signedBytesText(std::int64_t bytes); ///< "+12.66 GiB", "−16.67 GiB", "0"
std::string exactBytesText(std::uint64_t bytes); ///< "39,535,509,504 B"
std::string gibText(std::uint64_t bytes);        ///< "12.83", for columns whose head names GiB
std::string countText(std::int64_t value);       ///< "1,632"
std::string durationText(base::TimeNs ns);       ///< "41.2 ms"
/// An instant, with the decimals and the unit that a ruler with marks `step` apart needs: "10.93 s".
std::string instantText(base::TimeNs time, base::TimeNs step);
std::string instantText(base::TimeNs time);     ///< three decimals of a second, fewer where that is exact enough
std::string shareText(double part);             ///< 0.572 -> "57.2 %"
std::string ratioText(double ratio);            ///< "1.65x", "1,286x"
std::string rateText(double bytesPerSecond);    ///< "37.0 GB/s"
std::string addressText(std::uint64_t address); ///< "0x0006_8e00_0000"
std::string unknownText();                      ///< "–"

} // namespace vitrine::profiler
