// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The samples of a series that grows, kept from one picture to the next: on the same axis only the columns that got
// new values are summed up again, however many values there are before them. One thread.

#include <cstdint>
#include <vector>

#include "ui/models/common/plot_series.h"

namespace vitrine::ui {

class PlotColumns {
public:
    /// What series.samples() returns. A series whose last known value is no longer in its place is another one and is
    /// summed up from its begin; the caller calls forget() where two series could be mistaken for each other.
    const std::vector<PlotSample>& samples(const PlotSeries& series, const AxisMap& axis, int columns);
    void forget() { known_ = 0; }
    /// How many samples were made so far.
    std::uint64_t made() const { return made_; }

private:
    bool continues(const PlotSeries& series, const AxisMap& axis, int columns, const PlotSeries::Sight& sight) const;

    std::vector<PlotSample> samples_;
    AxisMap axis_;
    int columns_ = 0;
    PlotSeries::Sight sight_;
    std::size_t lastBegin_ = 0; ///< the first value of the last sample
    std::size_t known_ = 0;     ///< values of the series when the samples were made
    base::TimeNs knownPlace_ = 0;
    double knownValue_ = 0; ///< the last one of them
    std::uint64_t made_ = 0;
};

} // namespace vitrine::ui
