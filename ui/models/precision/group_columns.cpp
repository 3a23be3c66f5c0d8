// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/precision/group_columns.h"

#include <algorithm>
#include <cmath>

namespace vitrine::ui {

std::vector<GroupColumn> groupColumns(std::span<const float> errors, int most) {
    std::vector<GroupColumn> columns;
    const auto groups = static_cast<std::int64_t>(errors.size());
    const std::int64_t count = std::min<std::int64_t>(groups, std::max(0, most));
    columns.reserve(static_cast<std::size_t>(count));
    std::vector<float> sorted;
    for (std::int64_t i = 0; i < count; ++i) {
        GroupColumn column;
        column.first = groups * i / count;
        column.last = groups * (i + 1) / count;
        const auto own = errors.subspan(static_cast<std::size_t>(column.first),
                                        static_cast<std::size_t>(column.last - column.first));
        const auto worst = std::max_element(own.begin(), own.end());
        column.largest = *worst;
        column.worst = column.first + (worst - own.begin());
        sorted.assign(own.begin(), own.end());
        std::ranges::sort(sorted);
        const auto at = [&sorted](double part) {
            return sorted[static_cast<std::size_t>(std::lround(part * static_cast<double>(sorted.size() - 1)))];
        };
        column.low = at(0.05);
        column.median = at(0.5);
        column.high = at(0.95);
        columns.push_back(column);
    }
    return columns;
}

int unitPower(double largest) {
    if (!(largest > 0) || !std::isfinite(largest)) {
        return 0;
    }
    return static_cast<int>(std::floor(std::log10(largest) / 3)) * 3;
}

QString unitText(int power) {
    if (power == 0) {
        return QStringLiteral("1");
    }
    static constexpr char16_t kDigits[] = u"⁰¹²³⁴⁵⁶⁷⁸⁹";
    QString text = QStringLiteral("10");
    for (const QChar c : QString::number(power)) {
        text += c.isDigit() ? QChar(kDigits[c.digitValue()]) : QChar(u'⁻');
    }
    return text;
}

} // namespace vitrine::ui
