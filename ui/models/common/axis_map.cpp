// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/axis_map.h"

#include <algorithm>
#include <cmath>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"

namespace vitrine::ui {

AxisMap AxisMap::ofTime(TimeRange range, double width) {
    AxisMap map;
    map.range_ = range;
    map.width_ = std::max(1.0, width);
    return map;
}

/// At most `most` knots at equal numbers of events; with fewer than two events it stays an axis of time.
template <class TimeOf> void AxisMap::setKnots(double most, TimeOf timeOf) {
    if (lastEvent_ - firstEvent_ < 2) {
        return;
    }
    kind_ = AxisKind::Events;
    const int knots = static_cast<int>(std::clamp(most, 2.0, 4096.0));
    const std::uint64_t events = lastEvent_ - firstEvent_;
    knots_.reserve(static_cast<std::size_t>(knots) + 1);
    knots_.push_back(range_.begin);
    for (int i = 1; i < knots; ++i) {
        const std::uint64_t event =
            firstEvent_ + events * static_cast<std::uint64_t>(i) / static_cast<std::uint64_t>(knots);
        knots_.push_back(std::clamp(timeOf(event), knots_.back(), range_.end));
    }
    knots_.push_back(range_.end);
}

AxisMap AxisMap::ofEvents(const profiler::RunTimeline& timeline, TimeRange range, double width) {
    AxisMap map = ofTime(range, width);
    if (range.length() > 0) {
        map.firstEvent_ = timeline.memory().eventsBefore(range.begin);
        map.lastEvent_ = timeline.memory().eventsBefore(range.end);
        map.setKnots(map.width_, [&timeline](std::uint64_t event) { return timeline.memory().eventTime(event); });
    }
    return map;
}

AxisMap AxisMap::ofTimes(const std::vector<base::TimeNs>& times, TimeRange range, double width) {
    AxisMap map = ofTime(range, width);
    if (range.length() > 0) {
        const auto before = [&times](base::TimeNs time) {
            return static_cast<std::uint64_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
        };
        map.firstEvent_ = before(range.begin);
        map.lastEvent_ = before(range.end);
        // At most a knot for each event: between two of them time runs evenly, so that spans have lengths.
        const auto events = static_cast<double>(map.lastEvent_ - map.firstEvent_);
        map.setKnots(std::min(map.width_, events),
                     [&times](std::uint64_t event) { return times[static_cast<std::size_t>(event)]; });
    }
    return map;
}

double AxisMap::x(base::TimeNs time) const {
    if (kind_ == AxisKind::Time) {
        const double length = static_cast<double>(std::max<base::TimeNs>(1, range_.length()));
        return static_cast<double>(time - range_.begin) / length * width_;
    }
    if (time < range_.begin) {
        return -1;
    }
    const auto upper = std::upper_bound(knots_.begin(), knots_.end(), time);
    if (upper == knots_.end()) {
        return time > range_.end ? width_ + 1 : width_;
    }
    const auto lower = upper - 1;
    const double part = *upper > *lower ? static_cast<double>(time - *lower) / static_cast<double>(*upper - *lower) : 0;
    return (static_cast<double>(lower - knots_.begin()) + part) / static_cast<double>(knots_.size() - 1) * width_;
}

base::TimeNs AxisMap::time(double x) const {
    if (kind_ == AxisKind::Time) {
        return range_.begin +
               static_cast<base::TimeNs>(std::llround(x / width_ * static_cast<double>(range_.length())));
    }
    const double place = std::clamp(x / width_, 0.0, 1.0) * static_cast<double>(knots_.size() - 1);
    const auto at = std::min(static_cast<std::size_t>(place), knots_.size() - 2);
    const double part = place - static_cast<double>(at);
    return knots_[at] + static_cast<base::TimeNs>(part * static_cast<double>(knots_[at + 1] - knots_[at]));
}

double AxisMap::nsPerPixel() const {
    if (kind_ == AxisKind::Time) {
        return static_cast<double>(range_.length()) / width_;
    }
    // The densest pixel decides; a pixel without any time would ask for shapes of no length at all.
    base::TimeNs least = range_.length();
    for (std::size_t i = 1; i < knots_.size(); ++i) {
        if (knots_[i] > knots_[i - 1]) {
            least = std::min(least, knots_[i] - knots_[i - 1]);
        }
    }
    return std::max(static_cast<double>(least) * static_cast<double>(knots_.size() - 1) / width_,
                    static_cast<double>(range_.length()) / width_ / 256.0);
}

std::vector<profiler::MemoryColumn> AxisMap::columns(const profiler::RunTimeline& timeline, int count) const {
    if (count <= 0 || range_.length() <= 0) {
        return {};
    }
    return kind_ == AxisKind::Time ? timeline.memory().query(range_.begin, range_.end, count)
                                   : timeline.memory().queryEvents(firstEvent_, lastEvent_, count);
}

TimeGrid timeGrid(TimeRange range, double width, double wanted) {
    const double perTick =
        static_cast<double>(std::max<base::TimeNs>(1, range.length())) / std::max(1.0, width) * wanted;
    double decade = 1;
    while (decade * 10 <= perTick) {
        decade *= 10;
    }
    for (const auto& [factor, minor] : {std::pair{1.0, 5}, {2.0, 4}, {5.0, 5}, {10.0, 5}}) {
        if (decade * factor >= perTick * 0.75) {
            return {std::max<base::TimeNs>(1, static_cast<base::TimeNs>(decade * factor)), minor};
        }
    }
    return {static_cast<base::TimeNs>(decade * 10), 5};
}

ByteGrid byteGrid(std::uint64_t top, int lines) {
    struct Unit {
        std::uint64_t bytes;
        const char* name;
    };
    static constexpr Unit kUnits[] = {
        {1ULL << 40, "TiB"}, {1ULL << 30, "GiB"}, {1ULL << 20, "MiB"}, {1ULL << 10, "KiB"}, {1, "B"}};
    top = std::max<std::uint64_t>(top, 4);
    Unit unit = kUnits[4];
    for (const Unit& candidate : kUnits) {
        if (top >= candidate.bytes * 2 ||
            (candidate.bytes > 1 && top >= candidate.bytes && candidate.bytes >= (1ULL << 40))) {
            unit = candidate;
            break;
        }
    }
    const double amount = static_cast<double>(top) / static_cast<double>(unit.bytes);
    double step = 1;
    double decade = unit.bytes == 1 ? 1 : 0.1;
    while (decade < 1e7) {
        for (const double factor : {1.0, 2.0, 5.0}) {
            step = decade * factor;
            if (amount / step <= lines) {
                const auto bytes = static_cast<std::uint64_t>(std::llround(step * static_cast<double>(unit.bytes)));
                return {bytes, (top + bytes - 1) / bytes * bytes, unit.bytes, unit.name};
            }
        }
        decade *= 10;
    }
    return {top, top, unit.bytes, unit.name};
}

} // namespace vitrine::ui
