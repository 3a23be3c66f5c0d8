// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/precision/number_ticks.h"

#include <QLocale>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"

namespace vitrine::ui {

NumberTicks numberTicks(double low, double high, int most) {
    NumberTicks ticks;
    if (!std::isfinite(low) || !std::isfinite(high) || !(high > low) || most < 1) {
        return ticks;
    }
    const double rough = (high - low) / most;
    const int power = static_cast<int>(std::floor(std::log10(rough)));
    const double ten = std::pow(10.0, power);
    const double times = rough <= ten ? 1 : rough <= 2 * ten ? 2 : rough <= 5 * ten ? 5 : 10;
    const double step = times * ten;
    ticks.decimals = std::clamp(times == 10 ? -power - 1 : -power, 0, 12);
    const double first = std::ceil(low / step - 1e-9);
    for (int i = 0; i <= most && (first + i) * step <= high + step * 1e-9; ++i) {
        ticks.values.push_back((first + i) * step);
    }
    return ticks;
}

QString decimalText(double value, int decimals) {
    if (std::isnan(value)) {
        return unknownText();
    }
    if (std::isinf(value)) {
        return value < 0 ? QStringLiteral("−∞") : QStringLiteral("∞");
    }
    QString text = QLocale::c().toString(std::abs(value), 'f', decimals);
    QString shown;
    const qsizetype point = text.indexOf(QLatin1Char('.'));
    const qsizetype whole = point < 0 ? text.size() : point;
    for (qsizetype i = 0; i < text.size(); ++i) {
        const QChar c = text[i];
        if (i > 0 && i < whole && (whole - i) % 3 == 0 && c.isDigit() && shown.back().isDigit()) {
            shown += QLatin1Char(',');
        }
        if (c != QLatin1Char(',')) {
            shown += c;
        }
    }
    const bool zero = std::none_of(shown.begin(), shown.end(),
                                   [](QChar c) { return c.isLetter() || (c.isDigit() && c != QLatin1Char('0')); });
    return value < 0 && !zero ? QChar(0x2212) + shown : shown;
}

QString signedDecimalText(double value, int decimals) {
    const QString text = decimalText(value, decimals);
    const bool zero = text == decimalText(0, decimals);
    return value > 0 && !zero ? QLatin1Char('+') + text : text;
}

QString scientificText(double value) {
    return QString::number(value, 'e', 2).replace(QLatin1Char('-'), QChar(0x2212));
}

} // namespace vitrine::ui
