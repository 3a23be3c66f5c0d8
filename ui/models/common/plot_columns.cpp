// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/plot_columns.h"

#include <cmath>

namespace vitrine::ui {

bool PlotColumns::continues(const PlotSeries& series, const AxisMap& axis, int columns,
                            const PlotSeries::Sight& sight) const {
    if (known_ == 0 || series.size() < known_ || series.place(known_ - 1) != knownPlace_) {
        return false;
    }
    const double value = series.value(known_ - 1);
    const bool same = value == knownValue_ || (std::isnan(value) && std::isnan(knownValue_));
    return same && !samples_.empty() && columns == columns_ && axis.range() == axis_.range() &&
           axis.width() == axis_.width() && axis.kind() == axis_.kind() && sight.first == sight_.first &&
           sight.shared == sight_.shared && sight.last >= sight_.last;
}

const std::vector<PlotSample>& PlotColumns::samples(const PlotSeries& series, const AxisMap& axis, int columns) {
    const PlotSeries::Sight sight = series.sight(axis, columns);
    std::size_t from = sight.first;
    if (!continues(series, axis, columns, sight)) {
        samples_.clear();
    } else if (sight.last == sight_.last) {
        from = sight.last; // what is new lies out of sight
    } else {
        from = lastBegin_; // its column may have got more values
        samples_.pop_back();
    }
    const std::size_t kept = samples_.size();
    if (from < sight.last) {
        lastBegin_ = series.addSamples(axis, columns, sight, from, samples_);
    }
    made_ += samples_.size() - kept;
    axis_ = axis;
    columns_ = columns;
    sight_ = sight;
    known_ = series.size();
    if (known_ > 0) {
        knownPlace_ = series.place(known_ - 1);
        knownValue_ = series.value(known_ - 1);
    }
    return samples_;
}

} // namespace vitrine::ui
