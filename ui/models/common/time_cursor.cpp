// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/time_cursor.h"

#include <algorithm>
#include <cmath>

namespace vitrine::ui {

namespace {

constexpr base::TimeNs kShortestRange = 100;
constexpr std::size_t kHistoryLimit = 200;
constexpr base::TimeNs kGestureGap = 400'000'000; // steps closer than this are one gesture

} // namespace

TimeRange TimeCursor::bounds() const {
    return filters_.empty() ? extent_ : filters_.back().range;
}

TimeRange TimeCursor::clamped(TimeRange range) const {
    const TimeRange limits = bounds();
    const base::TimeNs whole = std::max(limits.length(), kShortestRange);
    const base::TimeNs length = std::clamp(range.length(), kShortestRange, whole);
    const base::TimeNs begin = std::clamp(range.begin, limits.begin, limits.begin + whole - length);
    return {begin, begin + length};
}

void TimeCursor::setExtent(TimeRange extent) {
    if (extent == extent_) {
        return;
    }
    const bool all = showsAll() && filters_.empty();
    const bool atEnd = range_.end >= extent_.end;
    extent_ = extent;
    if (!filters_.empty()) {
        return;
    }
    if (all) {
        range_ = clamped(extent);
    } else if (following_ && atEnd) {
        range_ = clamped({extent.end - range_.length(), extent.end});
    } else {
        range_ = clamped(range_);
    }
    emit rangeChanged();
}

void TimeCursor::setRange(TimeRange range, bool remember) {
    const TimeRange next = clamped(range);
    if (next == range_) {
        return;
    }
    const base::TimeNs now = base::monotonicNs();
    if (remember && (history_.empty() || now - lastRemembered_ > kGestureGap)) {
        history_.push_back(range_);
        if (history_.size() > kHistoryLimit) {
            history_.erase(history_.begin());
        }
    }
    lastRemembered_ = now;
    range_ = next;
    if (following_ && range_.end < bounds().end) {
        setFollowing(false);
    }
    emit rangeChanged();
}

void TimeCursor::jumpTo(TimeRange range) {
    lastRemembered_ = 0;
    setRange(range);
    lastRemembered_ = 0;
}

void TimeCursor::zoom(double factor, base::TimeNs anchor) {
    const double length = static_cast<double>(range_.length());
    const double wanted = std::clamp(length * factor, double{kShortestRange}, 9e18);
    const double place = length > 0 ? static_cast<double>(anchor - range_.begin) / length : 0.5;
    const auto begin = static_cast<base::TimeNs>(std::llround(static_cast<double>(anchor) - place * wanted));
    setRange({begin, begin + static_cast<base::TimeNs>(std::llround(wanted))});
}

void TimeCursor::pan(double part) {
    const auto step = static_cast<base::TimeNs>(std::llround(static_cast<double>(range_.length()) * part));
    setRange({range_.begin + step, range_.end + step});
}

void TimeCursor::fitAll() {
    jumpTo(bounds());
    setFollowing(true);
}

void TimeCursor::fitSelection() {
    if (!measured_ || measured_->length() <= 0) {
        fitAll();
        return;
    }
    const base::TimeNs middle = measured_->begin + measured_->length() / 2;
    const TimeRange centred = clamped({middle - range_.length() / 2, middle - range_.length() / 2 + range_.length()});
    const bool inside = measured_->begin >= centred.begin && measured_->end <= centred.end;
    if (inside && centred != range_) {
        jumpTo(centred);
    } else {
        jumpTo(*measured_);
    }
}

bool TimeCursor::back() {
    if (history_.empty()) {
        return false;
    }
    const TimeRange previous = clamped(history_.back());
    history_.pop_back();
    range_ = previous;
    lastRemembered_ = 0;
    emit rangeChanged();
    return true;
}

void TimeCursor::setFollowing(bool on) {
    if (following_ != on) {
        following_ = on;
        emit followingChanged(on);
    }
}

void TimeCursor::setCursor(std::optional<base::TimeNs> time) {
    if (time) {
        time = std::clamp(*time, extent_.begin, std::max(extent_.begin, extent_.end));
    }
    if (cursor_ != time) {
        cursor_ = time;
        emit cursorChanged();
    }
}

void TimeCursor::goTo(base::TimeNs time) {
    if (!range_.contains(time)) {
        if (!filters_.empty() && !bounds().contains(time)) {
            clearFilters();
        }
        setRange({time - range_.length() / 2, time - range_.length() / 2 + range_.length()});
    }
    setCursor(time);
}

void TimeCursor::setMeasured(std::optional<TimeRange> range) {
    if (range && range->begin > range->end) {
        std::swap(range->begin, range->end);
    }
    if (measured_ != range) {
        measured_ = range;
        emit measuredChanged();
    }
}

void TimeCursor::pushFilter(TimeFilter filter) {
    filters_.push_back(std::move(filter));
    emit filtersChanged();
    jumpTo(bounds());
}

void TimeCursor::removeFilter(std::size_t index) {
    if (index >= filters_.size()) {
        return;
    }
    filters_.resize(index);
    emit filtersChanged();
    jumpTo(bounds());
}

void TimeCursor::clearFilters() {
    removeFilter(0);
}

void TimeCursor::select(Selection selection) {
    if (!(selection_ == selection)) {
        selection_ = selection;
        emit selectionChanged();
    }
}

void TimeCursor::setMark(std::optional<TimeRange> mark) {
    if (mark_ != mark) {
        mark_ = mark;
        emit markChanged();
    }
}

void TimeCursor::reset(TimeRange extent) {
    filters_.clear();
    history_.clear();
    measured_.reset();
    mark_.reset();
    cursor_.reset();
    selection_ = {};
    extent_ = extent;
    range_ = clamped(extent);
    following_ = true;
    emit filtersChanged();
    emit rangeChanged();
    emit measuredChanged();
    emit markChanged();
    emit cursorChanged();
    emit selectionChanged();
    emit followingChanged(true);
}

} // namespace vitrine::ui
