// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The errors of many groups in few columns. Pure functions; any thread.

#include <QString>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace vitrine::ui {

using GroupErrorsPtr = std::shared_ptr<const std::vector<float>>;

/// Neighbouring groups, [first, last).
struct GroupColumn {
    std::int64_t first = 0, last = 0;
    float low = 0, median = 0, high = 0; ///< at 5, 50 and 95 %
    float largest = 0;
    std::int64_t worst = 0; ///< the group that has it
};

/// At most `most` columns of groups as equal in number as may be; none without groups.
std::vector<GroupColumn> groupColumns(std::span<const float> errors, int most);

/// The power of ten, a multiple of three, in whose units numbers up to `largest` have one to three digits.
int unitPower(double largest);
/// "10⁻³"; "1" for 0.
QString unitText(int power);

} // namespace vitrine::ui
