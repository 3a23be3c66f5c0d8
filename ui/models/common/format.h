// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The number texts of profiler/analysis/number_text.h as QString.

#include <QString>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace vitrine::ui {

QString textOf(std::string_view utf8);

QString bytesText(std::uint64_t bytes); ///< "12.83 GiB"
QString bytesText(std::optional<std::uint64_t> bytes);
QString signedBytesText(std::int64_t bytes); ///< "+12.66 GiB", "−16.67 GiB", "0"
QString exactBytesText(std::uint64_t bytes); ///< "39,535,509,504 B"
/// A peak, and that it is uncertain where records of memory were lost: "12.83 GiB (records lost)".
QString peakText(std::uint64_t bytes, bool incomplete);
QString gibText(std::uint64_t bytes);  ///< "12.83", for columns whose head names GiB
QString countText(std::int64_t value); ///< "1,632"
QString durationText(base::TimeNs ns); ///< "41.2 ms"
/// An instant to the grid of a ruler whose step is `step`: "10.93 s".
QString instantText(base::TimeNs time, base::TimeNs step);
QString instantText(base::TimeNs time);     ///< three decimals of a second, fewer where that is exact enough
QString shareText(double part);             ///< 0.572 -> "57.2 %"
QString ratioText(double ratio);            ///< "1.65x", "1,286x"
QString rateText(double bytesPerSecond);    ///< "37.0 GB/s"
QString addressText(std::uint64_t address); ///< "0x0006_8e00_0000"
QString unknownText();                      ///< "–"

} // namespace vitrine::ui
