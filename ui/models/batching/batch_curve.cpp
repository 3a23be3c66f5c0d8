// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/batching/batch_curve.h"

namespace vitrine::ui {

namespace {

constexpr std::size_t kFan = 8;

} // namespace

std::size_t lastAt(const std::vector<base::TimeNs>& places, base::TimeNs place) {
    const auto after = std::upper_bound(places.begin(), places.end(), place);
    return static_cast<std::size_t>(after - places.begin()) - 1; // wraps to kNoPlace
}

AxisColumns::AxisColumns(const AxisMap& axis, int count)
    : axis_(axis), scale_(std::max(1, count) / axis.width()), begin_(axis.range().begin) {
    const int columns = std::max(1, count);
    const double each = axis.width() / columns;
    borders_.reserve(static_cast<std::size_t>(columns) + 1);
    for (int x = 0; x <= columns; ++x) {
        borders_.push_back(axis.time(x * each));
    }
}

void BatchCurve::add(base::TimeNs place, double value) {
    pass(place, value);
    levels_.front().back() = value;
}

void BatchCurve::pass(base::TimeNs place, double value) {
    if (levels_.empty()) {
        levels_.emplace_back();
    }
    if (!places_.empty() && places_.back() == place) {
        values_.back() = value;
        levels_.front().back() = std::max(levels_.front().back(), value);
        return;
    }
    places_.push_back(place);
    values_.push_back(value);
    levels_.front().push_back(value);
}

void BatchCurve::finish() {
    while (!levels_.empty() && levels_.back().size() > kFan) {
        const std::vector<double>& below = levels_.back();
        std::vector<double> level((below.size() + kFan - 1) / kFan, 0.0);
        for (std::size_t i = 0; i < below.size(); ++i) {
            double& most = level[i / kFan];
            most = i % kFan == 0 ? below[i] : std::max(most, below[i]);
        }
        levels_.push_back(std::move(level));
    }
    if (!levels_.empty()) {
        largest_ = *std::max_element(levels_.back().begin(), levels_.back().end());
    }
}

std::optional<double> BatchCurve::at(base::TimeNs place) const {
    const std::size_t index = lastAt(places_, place);
    return index == kNoPlace || place >= end_ ? std::nullopt : std::optional(values_[index]);
}

std::optional<double> BatchCurve::most(base::TimeNs begin, base::TimeNs end) const {
    if (places_.empty() || begin >= end_ || end <= places_.front()) {
        return std::nullopt;
    }
    std::size_t first = lastAt(places_, begin);
    first = first == kNoPlace ? 0 : first;
    std::size_t last = lastAt(places_, std::max(begin, end - 1)) + 1;
    last = std::max(last, first + 1);
    // What was passed through where the first value began counts from there only.
    double most = values_[first];
    first += places_[first] < begin ? 1 : 0;
    for (std::size_t level = 0; first < last; ++level) {
        const std::vector<double>& values = levels_[level];
        const bool top = level + 1 == levels_.size();
        while (first < last && (top || first % kFan != 0)) {
            most = std::max(most, values[first++]);
        }
        while (first < last && last % kFan != 0) {
            most = std::max(most, values[--last]);
        }
        first /= kFan;
        last /= kFan;
    }
    return most;
}

std::vector<std::optional<double>> BatchCurve::columns(const AxisMap& axis, int count) const {
    std::vector<std::optional<double>> values(static_cast<std::size_t>(std::max(0, count)));
    const AxisColumns all(axis, count);
    for (int x = 0; x < count; ++x) {
        const TimeRange range = all.range(x);
        values[static_cast<std::size_t>(x)] = most(range.begin, range.end);
    }
    return values;
}

} // namespace vitrine::ui
