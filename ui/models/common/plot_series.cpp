// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/plot_series.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr std::size_t kSpanValues = 4096; ///< that percentiles are taken of

/// Collects values into one sample.
class SampleSum {
public:
    void add(double value) {
        if (std::isfinite(value)) {
            low_ = std::min(low_, value);
            high_ = std::max(high_, value);
            sum_ += value;
            ++count_;
        }
    }
    PlotSample at(double x) const {
        const double none = std::numeric_limits<double>::quiet_NaN();
        return count_ > 0 ? PlotSample{x, sum_ / static_cast<double>(count_), low_, high_}
                          : PlotSample{x, none, none, none};
    }
    std::optional<std::pair<double, double>> span() const {
        return count_ > 0 ? std::optional(std::pair(low_, high_)) : std::nullopt;
    }

private:
    double low_ = std::numeric_limits<double>::infinity(), high_ = -low_, sum_ = 0;
    std::size_t count_ = 0;
};

} // namespace

void PlotSeries::add(base::TimeNs place, double value) {
    places_.push_back(place);
    values_.push_back(value);
    if (std::isfinite(value)) {
        span_ =
            span_ ? std::pair(std::min(span_->first, value), std::max(span_->second, value)) : std::pair(value, value);
    }
}

void PlotSeries::reserve(std::size_t values) {
    places_.reserve(values);
    values_.reserve(values);
}

std::size_t PlotSeries::before(base::TimeNs place) const {
    return static_cast<std::size_t>(std::lower_bound(places_.begin(), places_.end(), place) - places_.begin());
}

PlotSeries::Sight PlotSeries::sight(const AxisMap& axis, int columns) const {
    const std::size_t seen = before(axis.range().begin);
    Sight sight;
    sight.first = seen > 0 ? seen - 1 : 0;
    sight.last = std::min(before(axis.range().end) + 1, size());
    if (columns < 1 || sight.first >= sight.last) {
        return {};
    }
    sight.shared = sight.last - sight.first > static_cast<std::size_t>(columns);
    return sight;
}

std::size_t PlotSeries::addSamples(const AxisMap& axis, int columns, const Sight& sight, std::size_t from,
                                   std::vector<PlotSample>& samples) const {
    const double scale = columns / std::max(1.0, axis.width());
    const auto columnOf = [&](base::TimeNs place) { return std::floor(axis.x(place) * scale); };
    std::size_t begin = from;
    for (std::size_t i = from; i < sight.last;) {
        begin = i;
        SampleSum sum;
        if (!sight.shared) {
            sum.add(values_[i]);
            samples.push_back(sum.at(axis.x(places_[i++])));
            continue;
        }
        // The end of the column is searched for: a place on the axis costs more than a value.
        const double column = columnOf(places_[i]);
        const auto end = std::partition_point(places_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                              places_.begin() + static_cast<std::ptrdiff_t>(sight.last),
                                              [&](base::TimeNs place) { return columnOf(place) <= column; });
        for (const auto last = static_cast<std::size_t>(end - places_.begin()); i < last; ++i) {
            sum.add(values_[i]);
        }
        samples.push_back(sum.at((column + 0.5) / scale));
    }
    return begin;
}

std::vector<PlotSample> PlotSeries::samples(const AxisMap& axis, int columns) const {
    std::vector<PlotSample> samples;
    const Sight seen = sight(axis, columns);
    addSamples(axis, columns, seen, seen.first, samples);
    return samples;
}

std::optional<std::pair<double, double>> PlotSeries::span(TimeRange range) const {
    SampleSum all;
    for (std::size_t i = before(range.begin); i < size() && places_[i] <= range.end; ++i) {
        all.add(values_[i]);
    }
    return all.span();
}

std::optional<std::pair<double, double>> PlotSeries::usualSpan(TimeRange range) const {
    std::vector<double> values;
    const std::size_t first = before(range.begin), last = before(range.end + 1);
    const std::size_t stride = std::max<std::size_t>(1, (last - std::min(first, last)) / kSpanValues);
    for (std::size_t i = first; i < last; i += stride) {
        if (std::isfinite(values_[i])) {
            values.push_back(values_[i]);
        }
    }
    if (values.empty()) {
        return std::nullopt;
    }
    const auto out = static_cast<std::ptrdiff_t>(values.size() / 100);
    std::nth_element(values.begin(), values.begin() + out, values.end());
    const double low = values[static_cast<std::size_t>(out)];
    std::nth_element(values.begin(), values.end() - 1 - out, values.end());
    return std::pair(low, values[values.size() - 1 - static_cast<std::size_t>(out)]);
}

std::optional<std::size_t> PlotSeries::nearest(base::TimeNs place) const {
    if (empty()) {
        return std::nullopt;
    }
    const std::size_t next = std::min(before(place), size() - 1);
    return next > 0 && place - places_[next - 1] < places_[next] - place ? next - 1 : next;
}

int PlotScale::lines() const {
    return static_cast<int>(std::lround((high - low) / step)) + 1;
}

QString PlotScale::text(double value) const {
    if (decades) {
        const double shown = std::pow(10.0, value);
        return value >= -4 && value < 6 ? QString::number(shown, 'g', 4) : QString::number(shown, 'e', 0);
    }
    const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step / unit) - 1e-9)), 0, 6);
    const double shown = value / unit;
    return decimals == 0 && std::abs(shown) < 1e15 ? countText(std::llround(shown))
                                                   : QString::number(shown, 'f', decimals);
}

PlotScale plotScale(double least, double largest, int lines) {
    if (!std::isfinite(least) || !std::isfinite(largest)) {
        return {};
    }
    if (largest - least < 1e-12 * std::max(1.0, std::abs(largest))) { // a level line lies in the middle
        const double air = std::max(std::abs(largest) * 0.1, 1e-9);
        least -= air;
        largest += air;
    }
    double decade = std::pow(10.0, std::floor(std::log10((largest - least) / lines)));
    for (;; decade *= 10) {
        for (const double factor : {1.0, 2.0, 5.0}) {
            const double step = decade * factor;
            const double low = std::floor(least / step + 1e-9) * step, high = std::ceil(largest / step - 1e-9) * step;
            if ((high - low) / step <= lines + 1e-9) {
                return {low, high, step};
            }
        }
    }
}

PlotScale decadeScale(double least, double largest, int lines) {
    PlotScale out;
    out.decades = true;
    out.low = std::isfinite(least) ? std::floor(least + 1e-9) : -1;
    out.high = std::isfinite(largest) ? std::ceil(largest - 1e-9) : 0;
    out.high = std::max(out.high, out.low + 1);
    out.step = std::max(1.0, std::ceil((out.high - out.low) / std::max(lines, 1)));
    out.high = out.low + out.step * std::ceil((out.high - out.low) / out.step);
    return out;
}

} // namespace vitrine::ui
