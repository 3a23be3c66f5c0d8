// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What all views of a session share: the visible stretch of time, the cursor, the measured range, the filter and the
// selected thing. One instance a window, on the GUI thread. Times are nanoseconds since the run's start.

#include <QObject>
#include <QString>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace vitrine::ui {

struct TimeRange {
    base::TimeNs begin = 0;
    base::TimeNs end = 0;

    base::TimeNs length() const { return end - begin; }
    bool contains(base::TimeNs t) const { return t >= begin && t < end; }
    friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

/// A stretch that all views are narrowed to, with the words of its crumb: "Steps 2 and 3".
struct TimeFilter {
    TimeRange range;
    QString label;
};

/// The pinned thing: an allocation (its id in the run) or a scope; 0 is none.
struct Selection {
    std::uint64_t allocation = 0;
    std::uint64_t scope = 0;
    friend bool operator==(const Selection&, const Selection&) = default;
};

class TimeCursor final : public QObject {
    Q_OBJECT

public:
    using QObject::QObject;

    /// All there is. A view that showed everything goes on to do so when the extent grows (following a live run).
    TimeRange extent() const { return extent_; }
    void setExtent(TimeRange extent);

    TimeRange range() const { return range_; }
    /// Keeps the range within the extent (or the filter) and at least 100 ns long. `remember` puts the previous range
    /// on the history that back() walks; steps of one gesture are remembered once.
    void setRange(TimeRange range, bool remember = true);
    /// The same for a step of its own (fit, a double-click): never part of a gesture.
    void jumpTo(TimeRange range);
    /// Zooms by `factor` (< 1: in) so that `anchor` keeps its place.
    void zoom(double factor, base::TimeNs anchor);
    /// Moves the range by a part of its length.
    void pan(double part);
    void fitAll();
    /// First centres the measured range, a second call fits it; without one fits all.
    void fitSelection();
    bool back(); ///< false: no earlier range
    bool showsAll() const { return range_ == bounds(); }

    bool following() const { return following_; }
    void setFollowing(bool on);

    std::optional<base::TimeNs> cursor() const { return cursor_; }
    void setCursor(std::optional<base::TimeNs> time);
    /// Also scrolls so that the time is visible.
    void goTo(base::TimeNs time);

    std::optional<TimeRange> measured() const { return measured_; }
    void setMeasured(std::optional<TimeRange> range);

    /// A mark that nobody kept yet: an instant (empty range) or a stretch.
    std::optional<TimeRange> mark() const { return mark_; }
    void setMark(std::optional<TimeRange> mark);

    const std::vector<TimeFilter>& filters() const { return filters_; }
    void pushFilter(TimeFilter filter);
    void removeFilter(std::size_t index); ///< and all inside it
    void clearFilters();

    Selection selection() const { return selection_; }
    void select(Selection selection);

    /// For another run: forgets everything.
    void reset(TimeRange extent);

signals:
    void rangeChanged();
    void cursorChanged();
    void measuredChanged();
    void markChanged();
    void filtersChanged();
    void selectionChanged();
    void followingChanged(bool on);

private:
    TimeRange bounds() const;
    TimeRange clamped(TimeRange range) const;

    TimeRange extent_, range_;
    std::optional<base::TimeNs> cursor_;
    std::optional<TimeRange> measured_, mark_;
    std::vector<TimeFilter> filters_;
    std::vector<TimeRange> history_;
    Selection selection_;
    bool following_ = true;
    qint64 lastRemembered_ = 0;
};

} // namespace vitrine::ui
