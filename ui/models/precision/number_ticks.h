// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Round numbers for the axes of weights and errors, and their texts.

#include <QString>
#include <vector>

namespace vitrine::ui {

struct NumberTicks {
    std::vector<double> values; ///< ascending, within the range
    int decimals = 0;           ///< that tell neighbours apart
};

/// Multiples of 1, 2 or 5 times a power of ten within [low, high], at most `most` of them. Nothing where the range is
/// empty or not finite.
NumberTicks numberTicks(double low, double high, int most);

/// "−1,234.50": U+2212 as the minus, separators between thousands. "0" has no sign; "–" stands for NaN, "∞" for what
/// is infinite.
QString decimalText(double value, int decimals);
/// The same with a plus before what is above 0.
QString signedDecimalText(double value, int decimals);
/// "1.25e−04": two decimals and a power of ten.
QString scientificText(double value);

} // namespace vitrine::ui
