// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/number_text.h"

#include <cmath>
#include <fmt/format.h>
#include <string_view>

#include "base/units.h"

namespace vitrine::profiler {

namespace {

constexpr std::string_view kNoBreakSpace = "\u00A0";
constexpr std::string_view kMinus = "\u2212";

std::string polished(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == ' ') {
            out += kNoBreakSpace;
        } else if (i == 0 && text[i] == '-') {
            out += kMinus;
        } else {
            out += text[i];
        }
    }
    return out;
}

/// Adds one to the last digit of a decimal number.
std::string oneFurther(std::string digits) {
    for (std::size_t at = digits.size(); at-- > 0;) {
        if (digits[at] >= '0' && digits[at] < '9') {
            ++digits[at];
            return digits;
        }
        if (digits[at] == '9') {
            digits[at] = '0';
        }
    }
    return digits.insert(digits.starts_with('-') ? 1 : 0, 1, '1');
}

/// With a fixed number of decimals. What lies exactly between two texts goes away from zero, and a negative zero is
/// zero.
std::string fixedText(double value, int decimals) {
    constexpr int kExact = 30; // further digits: a double that is so near to a half and none shows it in them
    const std::string exact = fmt::format("{:.{}f}", value, decimals + kExact);
    const std::string_view rest = std::string_view(exact).substr(exact.size() - kExact);
    if (rest.front() == '5' && rest.find_first_not_of('0', 1) == std::string_view::npos) {
        return oneFurther(exact.substr(0, exact.size() - kExact - (decimals == 0 ? 1 : 0))); // 0: without the point
    }
    return fmt::format("{:.{}f}", value == 0 ? 0.0 : value, decimals);
}

} // namespace

std::string bytesText(std::uint64_t bytes) {
    return polished(base::formatBytes(bytes));
}

std::string bytesText(std::optional<std::uint64_t> bytes) {
    return bytes ? bytesText(*bytes) : unknownText();
}

std::string signedBytesText(std::int64_t bytes) {
    if (bytes == 0) {
        return "0";
    }
    const auto magnitude =
        bytes < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(bytes) : static_cast<std::uint64_t>(bytes);
    return std::string(bytes < 0 ? kMinus : "+") + bytesText(magnitude);
}

std::string exactBytesText(std::uint64_t bytes) {
    return polished(base::formatGrouped(static_cast<std::int64_t>(bytes)) + " B");
}

std::string gibText(std::uint64_t bytes) {
    return fixedText(static_cast<double>(bytes) / static_cast<double>(1ULL << 30), 2);
}

std::string countText(std::int64_t value) {
    return polished(base::formatGrouped(value));
}

std::string durationText(base::TimeNs ns) {
    return polished(base::formatDuration(ns));
}

std::string instantText(base::TimeNs time, base::TimeNs step) {
    struct Unit {
        base::TimeNs ns;
        const char* name;
    };
    static constexpr Unit kUnits[] = {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "µs"}, {1, "ns"}};
    // Seconds down to steps of a millisecond; finer rulers name the unit that keeps few digits.
    const Unit unit = step >= 1'000'000 ? kUnits[0] : step >= 1'000 ? kUnits[1] : step >= 1 ? kUnits[2] : kUnits[3];
    int decimals = 0;
    for (base::TimeNs grid = unit.ns; grid > step && decimals < 3; grid /= 10) {
        ++decimals;
    }
    const double value = static_cast<double>(time) / static_cast<double>(unit.ns);
    return polished(fixedText(value, decimals) + ' ' + unit.name);
}

std::string instantText(base::TimeNs time) {
    const base::TimeNs size = time < 0 ? -time : time;
    if (size >= 1'000'000'000) {
        return instantText(time, size >= 100'000'000'000 ? 100'000'000 : 10'000'000);
    }
    return durationText(time);
}

std::string shareText(double part) {
    // A hyphen stands before a negative share: it is a number in a column, not a change.
    return std::isfinite(part) ? fixedText(part * 100.0, 1) + std::string(kNoBreakSpace) + '%' : unknownText();
}

std::string ratioText(double ratio) {
    constexpr double kExact = 100, kMost = 1e15; // from kExact up decimals say nothing
    if (!std::isfinite(ratio) || std::abs(ratio) >= kMost) {
        return unknownText();
    }
    return (std::abs(ratio) < kExact ? fixedText(ratio, 2) : countText(std::llround(ratio))) + 'x';
}

std::string rateText(double bytesPerSecond) {
    return polished(base::formatBytesPerSecond(bytesPerSecond));
}

std::string addressText(std::uint64_t address) {
    std::string digits = fmt::format("{:012x}", address);
    for (std::size_t at = digits.size(); at > 4;) {
        at -= 4;
        digits.insert(at, 1, '_');
    }
    return "0x" + digits;
}

std::string unknownText() {
    return "–";
}

} // namespace vitrine::profiler
