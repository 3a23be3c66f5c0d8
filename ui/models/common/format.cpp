// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/format.h"

#include <QObject>
#include <cmath>

#include "base/units.h"

namespace vitrine::ui {

namespace {

constexpr QChar kNoBreakSpace(0x00A0);
constexpr QChar kMinus(0x2212);

QString polished(const std::string& text) {
    QString out = QString::fromStdString(text);
    out.replace(QLatin1Char(' '), kNoBreakSpace);
    if (out.startsWith(QLatin1Char('-'))) {
        out[0] = kMinus;
    }
    return out;
}

} // namespace

QString textOf(std::string_view utf8) {
    return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size()));
}

QString bytesText(std::uint64_t bytes) {
    return polished(base::formatBytes(bytes));
}

QString bytesText(std::optional<std::uint64_t> bytes) {
    return bytes ? bytesText(*bytes) : unknownText();
}

QString signedBytesText(std::int64_t bytes) {
    if (bytes == 0) {
        return QStringLiteral("0");
    }
    const auto magnitude =
        bytes < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(bytes) : static_cast<std::uint64_t>(bytes);
    return (bytes < 0 ? QString(kMinus) : QStringLiteral("+")) + bytesText(magnitude);
}

QString peakText(std::uint64_t bytes, bool incomplete) {
    return incomplete ? QObject::tr("%1 (records lost)").arg(bytesText(bytes)) : bytesText(bytes);
}

QString exactBytesText(std::uint64_t bytes) {
    return polished(base::formatGrouped(static_cast<std::int64_t>(bytes)) + " B");
}

QString gibText(std::uint64_t bytes) {
    return QString::number(static_cast<double>(bytes) / static_cast<double>(1ULL << 30), 'f', 2);
}

QString countText(std::int64_t value) {
    return polished(base::formatGrouped(value));
}

QString durationText(base::TimeNs ns) {
    return polished(base::formatDuration(ns));
}

QString instantText(base::TimeNs time, base::TimeNs step) {
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
    QString number = QString::number(static_cast<double>(time) / static_cast<double>(unit.ns), 'f', decimals);
    if (number.startsWith(QLatin1Char('-'))) {
        number[0] = kMinus;
    }
    return number + kNoBreakSpace + QString::fromUtf8(unit.name);
}

QString instantText(base::TimeNs time) {
    const base::TimeNs size = time < 0 ? -time : time;
    if (size >= 1'000'000'000) {
        return instantText(time, size >= 100'000'000'000 ? 100'000'000 : 10'000'000);
    }
    return durationText(time);
}

QString shareText(double part) {
    if (!std::isfinite(part)) {
        return unknownText();
    }
    return QString::number(part * 100.0, 'f', 1) + kNoBreakSpace + QLatin1Char('%');
}

QString ratioText(double ratio) {
    constexpr double kExact = 100, kMost = 1e15; // from kExact up decimals say nothing
    if (!std::isfinite(ratio) || std::abs(ratio) >= kMost) {
        return unknownText();
    }
    return (std::abs(ratio) < kExact ? QString::number(ratio, 'f', 2) : countText(std::llround(ratio))) +
           QLatin1Char('x');
}

QString rateText(double bytesPerSecond) {
    return polished(base::formatBytesPerSecond(bytesPerSecond));
}

QString addressText(std::uint64_t address) {
    QString digits = QString::number(address, 16).rightJustified(12, QLatin1Char('0'));
    for (qsizetype at = digits.size() - 4; at > 0; at -= 4) {
        digits.insert(at, QLatin1Char('_'));
    }
    return QStringLiteral("0x") + digits;
}

QString unknownText() {
    return QStringLiteral("–");
}

} // namespace vitrine::ui
