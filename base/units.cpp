// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/units.h"

#include <array>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <optional>

#include "base/error.h"

namespace vitrine::base {

namespace {

constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();
constexpr int kMaxDecimals = 6; // 10^6 x 2^40 still fits 64 bits

/// The factor of a unit in lower case; none when there is no such unit.
std::optional<std::uint64_t> unitFactor(const std::string& unit) {
    if (unit.empty() || unit == "b") {
        return 1;
    }
    static constexpr std::string_view kPrefixes = "kmgt";
    const std::size_t power = kPrefixes.find(unit.front());
    if (power == std::string_view::npos) {
        return std::nullopt;
    }
    const std::string_view rest = std::string_view(unit).substr(1);
    if (rest.empty() || rest == "i" || rest == "ib") {
        return std::uint64_t{1} << (10 * (power + 1));
    }
    if (rest != "b") {
        return std::nullopt;
    }
    std::uint64_t factor = 1;
    for (std::size_t i = 0; i <= power; ++i) {
        factor *= 1000;
    }
    return factor;
}

bool isDigit(char c) {
    return c >= '0' && c <= '9';
}

/// Reads digits from `position` on; false when the number does not fit.
bool readDigits(std::string_view text, std::size_t& position, std::uint64_t& value, int& count) {
    value = 0;
    count = 0;
    for (; position < text.size() && isDigit(text[position]); ++position, ++count) {
        const auto digit = static_cast<std::uint64_t>(text[position] - '0');
        if (value > (kMaxBytes - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    return true;
}

std::string_view trimmed(std::string_view text) {
    const auto isSpace = [](char c) { return c == ' ' || c == '\t'; };
    while (!text.empty() && isSpace(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && isSpace(text.back())) {
        text.remove_suffix(1);
    }
    return text;
}

/// A unit and what one of it is worth.
struct Unit {
    double factor;
    std::string_view name;
};

} // namespace

std::uint64_t parseBytes(std::string_view text, std::string_view field) {
    const auto fail = [&](std::string_view why) -> BadInput {
        return BadInput(
            fmt::format("{}: \"{}\" {}; write for example 80GiB, 16GB or 512MiB", field, text.substr(0, 64), why));
    };
    const std::string_view body = trimmed(text);
    std::size_t position = 0;
    std::uint64_t whole = 0;
    int wholeDigits = 0;
    if (!readDigits(body, position, whole, wholeDigits)) {
        throw fail("is too large");
    }
    if (wholeDigits == 0) {
        throw fail("is no size");
    }
    std::uint64_t fraction = 0;
    int decimals = 0;
    if (position < body.size() && body[position] == '.') {
        ++position;
        if (!readDigits(body, position, fraction, decimals) || decimals > kMaxDecimals) {
            throw fail("has more than 6 decimals");
        }
        if (decimals == 0) {
            throw fail("is no size");
        }
    }
    std::string unit;
    for (const char c : trimmed(body.substr(position))) {
        unit.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    }
    const std::optional<std::uint64_t> factor = unitFactor(unit);
    if (!factor) {
        throw fail("has an unknown unit");
    }
    if (decimals > 0 && *factor == 1) {
        throw fail("is no whole number of bytes");
    }
    std::uint64_t scale = 1;
    for (int i = 0; i < decimals; ++i) {
        scale *= 10;
    }
    const std::uint64_t extra = fraction * *factor / scale;
    if (whole > (kMaxBytes - extra) / *factor) {
        throw fail("is too large");
    }
    return whole * *factor + extra;
}

std::string formatBytes(std::uint64_t bytes) {
    if (bytes < 1024) {
        return fmt::format("{} B", bytes);
    }
    const auto value = static_cast<double>(bytes);
    // The limits are where the rounded number would read 1024 of the smaller unit.
    if (value / 0x1p10 < 1023.95) {
        return fmt::format("{:.1f} KiB", value / 0x1p10);
    }
    if (value / 0x1p20 < 99.95) {
        return fmt::format("{:.1f} MiB", value / 0x1p20);
    }
    if (value / 0x1p20 < 1023.5) {
        return fmt::format("{:.0f} MiB", value / 0x1p20);
    }
    if (value / 0x1p30 < 1023.995) {
        return fmt::format("{:.2f} GiB", value / 0x1p30);
    }
    return fmt::format("{:.2f} TiB", value / 0x1p40);
}

std::string formatGrouped(std::int64_t value) {
    const std::string digits = fmt::format("{}", value);
    const std::size_t first = value < 0 ? 1 : 0;
    std::string text;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > first && (digits.size() - i) % 3 == 0) {
            text.push_back(',');
        }
        text.push_back(digits[i]);
    }
    return text;
}

std::string formatBytesPerSecond(double bytesPerSecond) {
    if (!std::isfinite(bytesPerSecond)) {
        return "n/a";
    }
    static constexpr std::array<Unit, 5> kUnits = {
        {{1, "B/s"}, {1e3, "kB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}}};
    for (const Unit& unit : kUnits) {
        const double scaled = bytesPerSecond / unit.factor;
        if (std::abs(scaled) < 999.95 || unit.name == kUnits.back().name) {
            return fmt::format("{:.1f} {}", scaled, unit.name);
        }
    }
    return {};
}

std::string formatDuration(std::int64_t nanoseconds) {
    static constexpr std::array<Unit, 4> kUnits = {{{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}}};
    for (const Unit& unit : kUnits) {
        const double scaled = static_cast<double>(nanoseconds) / unit.factor;
        const double size = std::abs(scaled);
        if (size >= 999.5 && unit.name != "s") {
            continue;
        }
        int decimals = 0;
        if (unit.factor > 1 && size < 99.95) {
            decimals = size < 9.995 ? 2 : 1;
        }
        return fmt::format("{:.{}f} {}", scaled, decimals, unit.name);
    }
    return {};
}

} // namespace vitrine::base
