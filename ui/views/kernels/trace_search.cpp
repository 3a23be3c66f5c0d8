// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/kernels/trace_search.h"

#include <QObject>
#include <algorithm>

#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr std::size_t kFindMarks = 2000;

} // namespace

void TraceSearch::clear() {
    found_.clear();
}

void TraceSearch::collect(const profiler::RunTimeline& timeline, const KernelTrace& trace) {
    found_.clear();
    std::vector<signed char> known; // by name: 0 not asked, 1 matches, -1 does not
    const auto matches = [&](std::uint32_t name) {
        known.resize(std::max<std::size_t>(known.size(), name + 1));
        if (known[name] == 0) {
            known[name] = textOf(timeline.text(name)).contains(text_, Qt::CaseInsensitive) ? 1 : -1;
        }
        return known[name] > 0;
    };
    for (const TraceTrack& track : trace.tracks) {
        for (const TraceRow& row : track.rows) {
            for (const TraceSpan& span : row.spans) {
                if (!text_.isEmpty() && matches(span.name)) {
                    found_.emplace_back(span.begin, span.scope);
                }
            }
        }
    }
    std::ranges::stable_sort(found_, {}, [](const auto& found) { return found.first; });
}

QString TraceSearch::find(const QString& text, int direction, const profiler::RunTimeline& timeline,
                          const KernelTrace& trace, LaneStack& stack, TimeCursor& time) {
    if (text != text_ || direction == 0) {
        text_ = text;
        at_ = 0;
        collect(timeline, trace);
        std::vector<TimeMark> marks;
        for (std::size_t i = 0; i < std::min(found_.size(), kFindMarks); ++i) {
            marks.push_back({found_[i].first, TimeMark::Kind::Find, {}});
        }
        stack.setMarks(marks);
    } else if (!found_.empty()) {
        at_ = (at_ + (direction > 0 ? 1 : found_.size() - 1)) % found_.size();
    }
    if (found_.empty()) {
        return text.isEmpty() ? QString() : QObject::tr("none");
    }
    if (direction != 0) {
        time.select({0, found_[at_].second});
        time.goTo(found_[at_].first);
    }
    return QObject::tr("%1 of %2").arg(direction == 0 ? 0 : at_ + 1).arg(countText(static_cast<qint64>(found_.size())));
}

} // namespace vitrine::ui
