// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// An axis in columns of pixels, and step curves that answer for each column what they came to at most. Values; any
// thread.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "ui/models/common/axis_map.h"

namespace vitrine::ui {

inline constexpr std::size_t kNoPlace = static_cast<std::size_t>(-1);
/// Index of the last of ascending places that is not after `place`; kNoPlace before the first.
std::size_t lastAt(const std::vector<base::TimeNs>& places, base::TimeNs place);

/// An axis cut into columns of pixels, once for all rows that lie on it.
class AxisColumns {
public:
    AxisColumns(const AxisMap& axis, int count);
    int count() const { return static_cast<int>(borders_.size()) - 1; }
    base::TimeNs begin() const { return begin_; } ///< of the axis
    /// What a column shows; never empty.
    TimeRange range(int column) const {
        const auto at = static_cast<std::size_t>(column);
        return {borders_[at], std::max(borders_[at] + 1, borders_[at + 1])};
    }
    /// The column in which an instant lies, beyond the ends as well.
    int column(base::TimeNs time) const { return static_cast<int>(std::floor(axis_.x(time) * scale_)); }

private:
    AxisMap axis_;
    double scale_ = 1;
    base::TimeNs begin_ = 0;
    std::vector<base::TimeNs> borders_; ///< count + 1
};

/// A value that holds from each place on, with its largest values over stretches of any length.
class BatchCurve {
public:
    /// `places` ascending; of equal places the last value holds.
    void add(base::TimeNs place, double value);
    /// The same for a value that counts what happened in order: of equal places the last one holds, but most() and
    /// largest() know those that were passed through.
    void pass(base::TimeNs place, double value);
    void finish();
    bool empty() const { return places_.empty(); }
    const std::vector<base::TimeNs>& places() const { return places_; }
    double largest() const { return largest_; }
    std::optional<double> at(base::TimeNs place) const; ///< nothing before the first
    /// Largest value that holds anywhere in [begin, end).
    std::optional<double> most(base::TimeNs begin, base::TimeNs end) const;
    std::vector<std::optional<double>> columns(const AxisMap& axis, int count) const;
    void setEnd(base::TimeNs end) { end_ = end; } ///< nothing is known from there on

private:
    std::vector<base::TimeNs> places_;
    std::vector<double> values_; ///< that hold
    std::vector<std::vector<double>>
        levels_; ///< level k: largest of kFan^k neighbours, what was passed through included
    double largest_ = 0;
    base::TimeNs end_ = 0;
};

} // namespace vitrine::ui
