// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/batching/batch_map.h"

#include <algorithm>
#include <cmath>

namespace vitrine::ui {

BatchMapPtr BatchMap::make(BatchSidePtr side, BatchAxis axis) {
    auto map = std::make_shared<BatchMap>();
    map->side_ = std::move(side);
    map->axis_ = axis;
    const BatchSide& facts = *map->side_;
    map->stepBegins_.reserve(facts.steps.size());
    map->stepEnds_.reserve(facts.steps.size());
    map->tokensBefore_.reserve(facts.steps.size() + 1);
    double tokens = 0;
    for (std::size_t i = 0; i < facts.steps.size(); ++i) {
        const auto at = static_cast<base::TimeNs>(i) * kStepLength;
        map->stepBegins_.push_back(axis == BatchAxis::Time ? facts.steps[i].begin : at);
        map->stepEnds_.push_back(axis == BatchAxis::Time ? facts.steps[i].end : at + kStepLength);
        map->tokensBefore_.push_back(tokens);
        tokens += facts.steps[i].sampled;
    }
    map->tokensBefore_.push_back(tokens);
    map->length_ = axis == BatchAxis::Time ? facts.end : static_cast<base::TimeNs>(facts.steps.size()) * kStepLength;
    map->placeSpans();
    map->placePieces();
    map->makeCurves();
    return map;
}

base::TimeNs BatchMap::place(base::TimeNs time) const {
    if (axis_ == BatchAxis::Time) {
        return time;
    }
    const BatchSide& facts = *side_;
    const base::BatchStepEvent* step = facts.stepAt(time);
    if (step == nullptr) {
        return 0;
    }
    const auto index = static_cast<base::TimeNs>(step - facts.steps.data());
    const double part =
        step->end > step->begin
            ? std::clamp(static_cast<double>(time - step->begin) / static_cast<double>(step->end - step->begin), 0.0,
                         1.0)
            : 1.0;
    return index * kStepLength + static_cast<base::TimeNs>(std::llround(part * kStepLength));
}

base::TimeNs BatchMap::timeAt(base::TimeNs place) const {
    if (axis_ == BatchAxis::Time || side_->steps.empty()) {
        return place;
    }
    const auto last = static_cast<base::TimeNs>(side_->steps.size()) - 1;
    const base::TimeNs index = std::clamp<base::TimeNs>(place / kStepLength, 0, last);
    const base::BatchStepEvent& step = side_->steps[static_cast<std::size_t>(index)];
    const double part = std::clamp(static_cast<double>(place - index * kStepLength) / kStepLength, 0.0, 1.0);
    return step.begin + static_cast<base::TimeNs>(part * static_cast<double>(step.end - step.begin));
}

void BatchMap::placeSpans() {
    const BatchSide& facts = *side_;
    const std::size_t count = facts.spans.size();
    begins_.resize(count);
    ends_.resize(count);
    before_.resize(count);
    const std::int64_t firstIndex = facts.steps.empty() ? 0 : facts.steps.front().index;
    for (std::size_t i = 0; i < count; ++i) {
        const base::SlotSpanEvent& span = facts.spans[i];
        if (axis_ == BatchAxis::Time) {
            begins_[i] = span.begin;
            ends_[i] = span.end;
        } else {
            begins_[i] = (span.firstStep - firstIndex) * kStepLength;
            ends_[i] = begins_[i] + span.steps * kStepLength;
        }
        if (i > 0 && facts.spans[i - 1].slot == span.slot) {
            before_[i] = before_[i - 1];
            before_[i][static_cast<std::size_t>(facts.spans[i - 1].state)] += ends_[i - 1] - begins_[i - 1];
        }
    }
    // By request: a counting sort keeps slots and begins in order.
    requestSpanBegins_.assign(facts.requests.size() + 1, 0);
    const auto of = [&](const base::SlotSpanEvent& span) {
        const bool worked = span.state != base::SlotState::Idle && span.state != base::SlotState::Preempted;
        return worked && facts.request(span.request) != nullptr ? static_cast<std::size_t>(span.request) : kNoPlace;
    };
    for (const base::SlotSpanEvent& span : facts.spans) {
        if (const std::size_t request = of(span); request != kNoPlace) {
            ++requestSpanBegins_[request + 1];
        }
    }
    for (std::size_t i = 1; i < requestSpanBegins_.size(); ++i) {
        requestSpanBegins_[i] += requestSpanBegins_[i - 1];
    }
    requestSpans_.resize(requestSpanBegins_.back());
    std::vector<std::size_t> next(requestSpanBegins_.begin(), requestSpanBegins_.end() - 1);
    for (std::size_t i = 0; i < count; ++i) {
        if (const std::size_t request = of(facts.spans[i]); request != kNoPlace) {
            requestSpans_[next[request]++] = i;
        }
    }
}

void BatchMap::placePieces() {
    if (axis_ == BatchAxis::Time) {
        return; // they lie where they are
    }
    pieces_ = side_->pieces;
    for (RequestPiece& piece : pieces_) {
        piece.begin = place(piece.begin);
        piece.end = place(piece.end);
    }
}

void BatchMap::makeCurves() {
    const BatchSide& facts = *side_;
    using base::RequestChange;
    std::vector<bool> waits(facts.requests.size()), runs(facts.requests.size());
    double waiting = 0, running = 0;
    for (const base::RequestEvent& event : facts.borders) {
        const auto request = static_cast<std::size_t>(event.request);
        const bool nowWaits = event.phase == RequestChange::Arrived || event.phase == RequestChange::Preempted;
        const bool nowRuns = event.phase == RequestChange::Admitted || event.phase == RequestChange::Resumed ||
                             event.phase == RequestChange::FirstToken;
        waiting += (nowWaits ? 1 : 0) - (waits[request] ? 1 : 0);
        running += (nowRuns ? 1 : 0) - (runs[request] ? 1 : 0);
        waits[request] = nowWaits;
        runs[request] = nowRuns;
        const base::TimeNs at = place(event.time);
        queue_.pass(at, waiting); // what waits is most before a step lets requests in, which may be at the same place
        running_.add(at, running);
        if (nowRuns && event.slot >= 0) {
            holders_.take(event.slot, at, event.request);
        } else if (!nowRuns) {
            holders_.leave(at, event.request);
        }
    }
    for (std::size_t i = 0; i < facts.steps.size(); ++i) {
        const base::BatchStepEvent& step = facts.steps[i];
        used_.add(stepBegins_[i], static_cast<double>(step.usedPages));
        held_.add(stepBegins_[i], static_cast<double>(step.usedPages + step.cachedPages));
    }
    for (BatchCurve* curve : {&queue_, &running_, &used_, &held_}) {
        curve->setEnd(length_);
        curve->finish();
    }
}

std::optional<std::size_t> BatchMap::spanAt(std::int32_t slot, base::TimeNs place) const {
    if (slot < 0 || slot >= side_->slotCount) {
        return std::nullopt;
    }
    const auto first = begins_.begin() + static_cast<std::ptrdiff_t>(side_->slotBegins[static_cast<std::size_t>(slot)]);
    const auto last =
        begins_.begin() + static_cast<std::ptrdiff_t>(side_->slotBegins[static_cast<std::size_t>(slot) + 1]);
    const auto after = std::upper_bound(first, last, place);
    if (after == first) {
        return std::nullopt;
    }
    const auto index = static_cast<std::size_t>(after - begins_.begin()) - 1;
    return place < ends_[index] ? std::optional(index) : std::nullopt;
}

std::vector<std::int32_t> BatchMap::runningAt(base::TimeNs place) const {
    return place < length_ ? holders_.at(place) : std::vector<std::int32_t>();
}

std::span<const std::size_t> BatchMap::spansOf(std::int32_t request) const {
    if (side_->request(request) == nullptr) {
        return {};
    }
    const auto at = static_cast<std::size_t>(request);
    return std::span(requestSpans_)
        .subspan(requestSpanBegins_[at], requestSpanBegins_[at + 1] - requestSpanBegins_[at]);
}

std::vector<std::span<const std::size_t>> BatchMap::spansOf(std::int32_t request, TimeRange range) const {
    std::vector<std::span<const std::size_t>> visible;
    std::span<const std::size_t> rest = spansOf(request);
    while (!rest.empty()) {
        const std::int32_t slot = side_->spans[rest.front()].slot;
        const auto end =
            std::ranges::partition_point(rest, [&](std::size_t span) { return side_->spans[span].slot <= slot; });
        const std::span<const std::size_t> inSlot(rest.begin(), end);
        const auto from =
            std::ranges::partition_point(inSlot, [&](std::size_t span) { return ends_[span] < range.begin; });
        const auto to =
            std::ranges::partition_point(inSlot, [&](std::size_t span) { return begins_[span] <= range.end; });
        if (from < to) {
            visible.emplace_back(from, to);
        }
        rest = rest.subspan(inSlot.size());
    }
    return visible;
}

std::span<const RequestPiece> BatchMap::pieces(std::int32_t request) const {
    if (side_->request(request) == nullptr) {
        return {};
    }
    const auto at = static_cast<std::size_t>(request);
    const std::vector<RequestPiece>& all = axis_ == BatchAxis::Time ? side_->pieces : pieces_;
    return std::span(all).subspan(side_->pieceBegins[at], side_->pieceBegins[at + 1] - side_->pieceBegins[at]);
}

/// What took most of a piece of the axis that the spans [first, last) lie in: looked at one by one where they are few,
/// from the sums before them where they are many.
void BatchMap::crowd(std::size_t first, std::size_t last, TimeRange piece, SlotRun& out) const {
    constexpr std::size_t kFew = 4;
    if (last - first <= kFew) {
        base::TimeNs longest = -1;
        for (std::size_t i = first; i < last; ++i) {
            const base::TimeNs inside = std::min(piece.end, ends_[i]) - std::max(piece.begin, begins_[i]);
            if (inside > longest) {
                longest = inside;
                out.state = side_->spans[i].state;
                out.request = side_->spans[i].request;
            }
        }
        return;
    }
    std::array<base::TimeNs, base::kSlotStateCount> sums{};
    for (std::size_t state = 0; state < sums.size(); ++state) {
        sums[state] = before_[last - 1][state] - before_[first][state];
    }
    const auto stateOf = [this](std::size_t span) { return static_cast<std::size_t>(side_->spans[span].state); };
    sums[stateOf(last - 1)] += std::min(piece.end, ends_[last - 1]) - begins_[last - 1];
    sums[stateOf(first)] -= std::max<base::TimeNs>(0, piece.begin - begins_[first]);
    const auto most = std::max_element(sums.begin(), sums.end());
    out.state = static_cast<base::SlotState>(most - sums.begin());
    out.request = -1;
    out.several = true;
}

void BatchMap::slotRuns(std::int32_t slot, const AxisColumns& columns, std::vector<SlotRun>& out) const {
    out.clear();
    const BatchSide& facts = *side_;
    if (slot < 0 || slot >= facts.slotCount) {
        return;
    }
    const std::size_t end = facts.slotBegins[static_cast<std::size_t>(slot) + 1];
    const auto add = [&out](const SlotRun& run) {
        if (!out.empty() && out.back().to == run.from && out.back().state == run.state &&
            out.back().request == run.request) {
            out.back().to = run.to;
        } else {
            out.push_back(run);
        }
    };
    std::size_t at = facts.slotBegins[static_cast<std::size_t>(slot)];
    // The one looked for is near: steps double until it is passed.
    const auto endsAfter = [&](base::TimeNs place) {
        std::size_t low = at, width = 1;
        while (low + width < end && ends_[low + width - 1] <= place) {
            low += width;
            width *= 2;
        }
        const auto first = ends_.begin() + static_cast<std::ptrdiff_t>(low);
        const auto last = ends_.begin() + static_cast<std::ptrdiff_t>(std::min(end, low + width));
        return static_cast<std::size_t>(std::upper_bound(first, last, place) - ends_.begin());
    };
    at = endsAfter(columns.begin());
    int column = 0;
    while (at < end && column < columns.count()) {
        const int from = std::max(column, columns.column(begins_[at]));
        if (from >= columns.count()) {
            return;
        }
        const TimeRange piece = columns.range(from);
        if (ends_[at] >= piece.end) { // alone up to the border of a column
            int to = std::clamp(columns.column(ends_[at]), from + 1, columns.count());
            add({from, to, facts.spans[at].state, facts.spans[at].request, false});
            column = to;
        } else {
            const std::size_t next = endsAfter(piece.end - 1);
            const std::size_t last = next < end && begins_[next] < piece.end ? next + 1 : next;
            SlotRun run{from, from + 1, facts.spans[at].state, facts.spans[at].request, false};
            if (last - at > 1) {
                crowd(at, last, piece, run);
            }
            add(run);
            column = from + 1;
            at = next;
            continue;
        }
        if (column < columns.count()) {
            at = endsAfter(columns.range(column).begin);
        }
    }
}

double BatchMap::tokensUntil(base::TimeNs place) const {
    const std::size_t index = lastAt(stepBegins_, place);
    if (index == kNoPlace) {
        return 0;
    }
    const base::TimeNs length = stepEnds_[index] - stepBegins_[index];
    const double part =
        length > 0 ? std::clamp(static_cast<double>(place - stepBegins_[index]) / static_cast<double>(length), 0.0, 1.0)
                   : 1.0;
    return tokensBefore_[index] + part * (tokensBefore_[index + 1] - tokensBefore_[index]);
}

namespace {

/// A round width, so that bins keep their places while the axis moves.
base::TimeNs binWidth(TimeRange range, int bins) {
    const double wanted = static_cast<double>(std::max<base::TimeNs>(1, range.length())) / std::max(1, bins);
    const double power = std::pow(10.0, std::floor(std::log10(std::max(1.0, wanted))));
    const double lead = wanted / power;
    const double round = lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10;
    return std::max<base::TimeNs>(1, static_cast<base::TimeNs>(round * power));
}

} // namespace

std::vector<std::optional<double>> BatchMap::rateColumns(const AxisMap& axis, int columns, int bins) const {
    std::vector<std::optional<double>> values(static_cast<std::size_t>(std::max(0, columns)));
    const base::TimeNs width = binWidth(axis.range(), bins);
    const AxisColumns all(axis, columns);
    base::TimeNs bin = -1;
    std::optional<double> rate;
    for (int x = 0; x < columns; ++x) {
        const base::TimeNs at = all.range(x).begin;
        if (at < 0 || at >= length_) {
            continue;
        }
        if (at / width != bin) {
            bin = at / width;
            const base::TimeNs from = bin * width, to = std::min(length_, from + width);
            const double took = static_cast<double>(timeAt(to) - timeAt(from)) * 1e-9;
            rate = took > 0 ? std::optional((tokensUntil(to) - tokensUntil(from)) / took) : std::nullopt;
        }
        values[static_cast<std::size_t>(x)] = rate;
    }
    return values;
}

double BatchMap::mostRate(const AxisMap& axis, int bins) const {
    double most = 0;
    for (const auto& value : rateColumns(axis, std::max(1, static_cast<int>(axis.width())), bins)) {
        most = std::max(most, value.value_or(0));
    }
    return most;
}

} // namespace vitrine::ui
