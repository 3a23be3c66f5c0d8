// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/timeline_align.h"

#include <algorithm>
#include <fmt/format.h>

#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"

namespace vitrine::profiler {

using base::TimeNs;

namespace {

/// A named stretch of one run.
struct Landmark {
    std::string name;
    TimeStretch time;
};

std::vector<Landmark> landmarksOf(const RunTimeline& timeline, base::ScopeKind kind) {
    std::vector<Landmark> landmarks;
    for (const ScopeRow& scope : scopesOfKind(timeline, kind)) {
        const TimeNs end = scope.end < 0 ? timeline.end() : scope.end;
        // Only outermost ones: a scope inside the last belongs to it.
        if (!landmarks.empty() && scope.begin < landmarks.back().time.end) {
            continue;
        }
        std::string name = scopeName(timeline, scope);
        if (kind == base::ScopeKind::Step) {
            name = std::string(timeline.text(scope.name)) + " " + name;
        }
        landmarks.push_back({std::move(name), {scope.begin, end}});
    }
    return landmarks;
}

/// Pairs equal names in order: the longest common subsequence where that is affordable, else the next equal one.
std::vector<std::pair<std::size_t, std::size_t>> match(const std::vector<Landmark>& a, const std::vector<Landmark>& b) {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    constexpr std::size_t kAffordable = 4'000'000;
    if (a.size() * b.size() > kAffordable) {
        std::size_t next = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            // Steps are numbered, so the partner is near.
            for (std::size_t j = next; j < std::min(b.size(), next + 64); ++j) {
                if (a[i].name == b[j].name) {
                    pairs.emplace_back(i, j);
                    next = j + 1;
                    break;
                }
            }
        }
        return pairs;
    }
    std::vector<std::vector<std::uint32_t>> longest(a.size() + 1, std::vector<std::uint32_t>(b.size() + 1, 0));
    for (std::size_t i = a.size(); i-- > 0;) {
        for (std::size_t j = b.size(); j-- > 0;) {
            longest[i][j] =
                a[i].name == b[j].name ? longest[i + 1][j + 1] + 1 : std::max(longest[i + 1][j], longest[i][j + 1]);
        }
    }
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        if (a[i].name == b[j].name) {
            pairs.emplace_back(i++, j++);
        } else if (longest[i + 1][j] >= longest[i][j + 1]) {
            ++i;
        } else {
            ++j;
        }
    }
    return pairs;
}

std::optional<TimeStretch> stretch(TimeNs begin, TimeNs end) {
    return end > begin ? std::optional(TimeStretch{begin, end}) : std::nullopt;
}

Alignment byTime(const RunTimeline& a, const RunTimeline& b) {
    // What both have, then what only the longer has.
    const TimeNs both = std::min(a.end(), b.end());
    std::vector<AlignedSegment> segments{{"", stretch(0, both), stretch(0, both)}};
    segments.push_back({"", stretch(both, a.end()), stretch(both, b.end())});
    return Alignment(std::move(segments));
}

std::vector<MemoryColumn> columnsOf(const RunTimeline& timeline, TimeNs begin, TimeNs end) {
    return timeline.memory().query(begin, std::max(end, begin + 1), 1);
}

/// The peak of one run over [begin, end) of the axis.
std::optional<MemoryColumn> sideColumn(const RunTimeline& timeline, const Alignment& alignment,
                                       std::optional<TimeStretch> AlignedSegment::* side, TimeNs begin, TimeNs end) {
    std::optional<MemoryColumn> column;
    const std::vector<AlignedSegment>& segments = alignment.segments();
    auto next = std::ranges::upper_bound(segments, begin, {}, &AlignedSegment::position);
    next = next == segments.begin() ? next : std::prev(next);
    for (; next != segments.end() && next->position < end; ++next) {
        const AlignedSegment& segment = *next;
        const TimeNs low = std::max(begin, segment.position);
        const TimeNs high = std::min(end, segment.position + segment.length);
        if (low >= high || !(segment.*side)) {
            continue;
        }
        const TimeStretch time = *(segment.*side);
        const auto at = [&](TimeNs position) {
            return time.begin + static_cast<TimeNs>(static_cast<__int128>(position - segment.position) *
                                                    (time.end - time.begin) / segment.length);
        };
        const MemoryColumn piece = columnsOf(timeline, at(low), at(high)).front();
        if (!column) {
            column = piece;
            continue;
        }
        column->minTotal = std::min(column->minTotal, piece.minTotal);
        column->events += piece.events;
        if (piece.maxTotal > column->maxTotal) {
            column->maxTotal = piece.maxTotal;
            column->maxTime = piece.maxTime;
            column->atMax = piece.atMax;
        }
    }
    return column;
}

} // namespace

Alignment::Alignment(std::vector<AlignedSegment> segments, Widths widths) {
    TimeNs total = 0;
    int named = 0;
    for (AlignedSegment& segment : segments) {
        const TimeNs a = segment.a ? segment.a->end - segment.a->begin : 0;
        const TimeNs b = segment.b ? segment.b->end - segment.b->begin : 0;
        segment.length = widths == Widths::Mean && a > 0 && b > 0 ? (a + b + 1) / 2 : std::max(a, b);
        total += segment.length;
        named += segment.name.empty() || segment.length == 0 ? 0 : 1;
    }
    const double share = std::min(kSmallestPhase, 0.5 / std::max(1, named));
    const auto least = widths == Widths::Mean ? static_cast<TimeNs>(share * static_cast<double>(total)) : TimeNs{0};
    TimeNs position = 0;
    for (AlignedSegment& segment : segments) {
        if (segment.length == 0) {
            continue;
        }
        segment.length = segment.name.empty() ? segment.length : std::max(segment.length, least);
        segment.position = position;
        position += segment.length;
        segments_.push_back(std::move(segment));
    }
}

TimeNs Alignment::length() const {
    return segments_.empty() ? 0 : segments_.back().position + segments_.back().length;
}

std::optional<TimeNs> Alignment::timeIn(Side side, TimeNs position) const {
    const auto after = std::ranges::upper_bound(segments_, position, {}, &AlignedSegment::position);
    if (after == segments_.begin()) {
        return std::nullopt;
    }
    const AlignedSegment& segment = *(after - 1);
    const std::optional<TimeStretch>& time = segment.*side;
    if (!time || position > segment.position + segment.length) {
        return std::nullopt;
    }
    return time->begin + static_cast<TimeNs>(static_cast<__int128>(position - segment.position) *
                                             (time->end - time->begin) / segment.length);
}

TimeNs Alignment::positionOf(Side side, TimeNs time) const {
    TimeNs position = 0;
    for (const AlignedSegment& segment : segments_) {
        const std::optional<TimeStretch>& own = segment.*side;
        if (!own || time < own->begin) {
            continue;
        }
        const TimeNs inside = std::min(time, own->end) - own->begin;
        position = segment.position +
                   static_cast<TimeNs>(static_cast<__int128>(inside) * segment.length / (own->end - own->begin));
        if (time < own->end) {
            break;
        }
    }
    return position;
}

std::optional<TimeNs> Alignment::timeInA(TimeNs position) const {
    return timeIn(&AlignedSegment::a, position);
}

std::optional<TimeNs> Alignment::timeInB(TimeNs position) const {
    return timeIn(&AlignedSegment::b, position);
}

TimeNs Alignment::positionOfA(TimeNs time) const {
    return positionOf(&AlignedSegment::a, time);
}

TimeNs Alignment::positionOfB(TimeNs time) const {
    return positionOf(&AlignedSegment::b, time);
}

Alignment align(const RunTimeline& a, const RunTimeline& b, AlignBy by) {
    if (by == AlignBy::Time) {
        return byTime(a, b);
    }
    const base::ScopeKind kind = by == AlignBy::Phase ? base::ScopeKind::Phase : base::ScopeKind::Step;
    const std::vector<Landmark> inA = landmarksOf(a, kind);
    const std::vector<Landmark> inB = landmarksOf(b, kind);
    const auto pairs = match(inA, inB);
    if (pairs.empty()) {
        return byTime(a, b);
    }
    std::vector<AlignedSegment> segments;
    TimeNs doneA = 0;
    TimeNs doneB = 0;
    std::size_t i = 0;
    std::size_t j = 0;
    const auto only = [&](const Landmark& landmark, TimeNs& done, bool first) {
        const auto gap = stretch(done, landmark.time.begin);
        const auto own = stretch(landmark.time.begin, landmark.time.end);
        segments.push_back({"", first ? gap : std::nullopt, first ? std::nullopt : gap});
        segments.push_back({landmark.name, first ? own : std::nullopt, first ? std::nullopt : own});
        done = std::max(done, landmark.time.end);
    };
    for (const auto& [nextA, nextB] : pairs) {
        for (; i < nextA; ++i) {
            only(inA[i], doneA, true);
        }
        for (; j < nextB; ++j) {
            only(inB[j], doneB, false);
        }
        segments.push_back({"", stretch(doneA, inA[i].time.begin), stretch(doneB, inB[j].time.begin)});
        segments.push_back(
            {inA[i].name, stretch(inA[i].time.begin, inA[i].time.end), stretch(inB[j].time.begin, inB[j].time.end)});
        doneA = inA[i++].time.end;
        doneB = inB[j++].time.end;
    }
    for (; i < inA.size(); ++i) {
        only(inA[i], doneA, true);
    }
    for (; j < inB.size(); ++j) {
        only(inB[j], doneB, false);
    }
    segments.push_back({"", stretch(doneA, a.end()), stretch(doneB, b.end())});
    return Alignment(std::move(segments), Alignment::Widths::Mean);
}

std::vector<DifferenceColumn> difference(const RunTimeline& a, const RunTimeline& b, const Alignment& alignment,
                                         TimeNs begin, TimeNs end, int columns) {
    std::vector<DifferenceColumn> out;
    for (int i = 0; i < columns; ++i) {
        const auto border = [&](int index) {
            return begin + static_cast<TimeNs>(static_cast<__int128>(end - begin) * index / columns);
        };
        DifferenceColumn column;
        column.a = sideColumn(a, alignment, &AlignedSegment::a, border(i), border(i + 1));
        column.b = sideColumn(b, alignment, &AlignedSegment::b, border(i), border(i + 1));
        if (column.a && column.b) {
            column.change = static_cast<std::int64_t>(column.b->maxTotal - column.a->maxTotal);
        }
        out.push_back(column);
    }
    return out;
}

std::string lossSentence(const RunTimeline& a, const RunTimeline& b) {
    const bool cutA = a.memory().peak(a.begin(), a.end()).incomplete,
               cutB = b.memory().peak(b.begin(), b.end()).incomplete;
    if (!cutA && !cutB) {
        return "";
    }
    return fmt::format("Records of {} were lost, so {} uncertain.", cutA && cutB ? "A and B" : (cutA ? "A" : "B"),
                       cutA && cutB ? "both peaks are" : "its peak is");
}

} // namespace vitrine::profiler
