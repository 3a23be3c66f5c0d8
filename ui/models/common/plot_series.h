// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A series of values at places of an axis, for lines of plots: what is drawn is summarised for each column of pixels,
// however many values there are. Values; any thread.

#include <QString>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "ui/models/common/axis_map.h"
#include "ui/models/common/time_cursor.h"

namespace vitrine::ui {

/// What a line shows at x (pixels from the plot's left edge): its value, and the span of the values that share x. Not
/// finite where none of them is.
struct PlotSample {
    double x = 0;
    double value = 0;
    double low = 0, high = 0;
};

class PlotSeries {
public:
    /// Places ascend.
    void add(base::TimeNs place, double value);
    void reserve(std::size_t values);
    bool empty() const { return places_.empty(); }
    std::size_t size() const { return places_.size(); }
    base::TimeNs place(std::size_t index) const { return places_[index]; }
    double value(std::size_t index) const { return values_[index]; }

    /// One for each value in sight and the neighbours beyond both edges; with more values than columns, one for each
    /// column that has values: their mean.
    std::vector<PlotSample> samples(const AxisMap& axis, int columns) const;
    /// The values [first, last) that samples() is about.
    struct Sight {
        std::size_t first = 0, last = 0;
        bool shared = false; ///< several of them share a column
    };
    Sight sight(const AxisMap& axis, int columns) const;
    /// Appends the samples of the values [from, sight.last), where `from` is the first one of its column; returns the
    /// first value of the last sample.
    std::size_t addSamples(const AxisMap& axis, int columns, const Sight& sight, std::size_t from,
                           std::vector<PlotSample>& samples) const;
    /// Least and largest of the finite values in a stretch; nothing where there is none.
    std::optional<std::pair<double, double>> span(TimeRange range) const;
    std::optional<std::pair<double, double>> span() const { return span_; } ///< of all
    /// Between the 1st and the 99th percentile of the finite values in a stretch, so that a few that lie far away do
    /// not make the others flat; nothing where there is none. Of many values it looks at some thousand, evenly spread.
    std::optional<std::pair<double, double>> usualSpan(TimeRange range) const;
    /// The index of the value that lies nearest; nothing in an empty series.
    std::optional<std::size_t> nearest(base::TimeNs place) const;

private:
    std::size_t before(base::TimeNs place) const; ///< number of values before it

    std::vector<base::TimeNs> places_;
    std::vector<double> values_;
    std::optional<std::pair<double, double>> span_;
};

/// A scale of plain numbers with round lines: at most `lines` steps from `low`, a line at or below the least value, to
/// `high`, one at or above the largest.
struct PlotScale {
    double low = 0, high = 1, step = 1;
    double unit = 1;      ///< text() counts these
    bool decades = false; ///< values are decimal logarithms; text() says what they are of

    friend bool operator==(const PlotScale&, const PlotScale&) = default;
    int lines() const; ///< number of lines, both ends included
    double line(int index) const { return low + step * index; }
    QString text(double value) const; ///< with the decimals that tell neighbouring lines apart
};
PlotScale plotScale(double least, double largest, int lines);
/// A scale of decimal logarithms: whole decades, at most `lines` steps.
PlotScale decadeScale(double least, double largest, int lines);

} // namespace vitrine::ui
