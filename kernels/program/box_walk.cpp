// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/box_walk.h"

#include <algorithm>
#include <numeric>

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kFewElements = 1024; ///< evaluated rather than cut further

} // namespace

template <class Visit> void BoxWalk::halves(const ProgramBox& box, const Visit& visit) {
    ProgramBox first = box;
    ProgramBox second = box;
    if (widthOf(box) >= heightOf(box)) {
        first.keyHigh = box.keyLow + halfOf(widthOf(box)) - 1;
        second.keyLow = first.keyHigh + 1;
    } else {
        first.queryHigh = box.queryLow + halfOf(heightOf(box)) - 1;
        second.queryLow = first.queryHigh + 1;
    }
    visit(first);
    visit(second);
}

std::int64_t BoxWalk::allowedInRow(const ProgramBox& box, std::int64_t query, std::int64_t key, int count) {
    interpreter_.run({box.batchLow, box.headLow, query}, key, count, nullptr);
    const std::uint8_t* allowed = interpreter_.booleans();
    return std::accumulate(allowed, allowed + count, 0);
}

void BoxWalk::lookAtRow(const ProgramBox& box, std::int64_t query, std::int64_t keyEnd, unsigned& seen) {
    for (std::int64_t key = box.keyLow; key < keyEnd && seen != kBoth; key += kInterpreterWidth) {
        const int count = static_cast<int>(std::min<std::int64_t>(kInterpreterWidth, keyEnd - key));
        const std::int64_t allowed = allowedInRow(box, query, key, count);
        seen |= (allowed > 0 ? kAllowed : kNothing) | (allowed < count ? kBlocked : kNothing);
    }
}

void BoxWalk::look(const ProgramBox& box, unsigned& seen, const base::StopToken& stop) {
    if (seen == kBoth) {
        return;
    }
    const MaskVerdict found = verdict(box);
    if (found != MaskVerdict::Undecided) {
        seen |= found == MaskVerdict::Full ? kAllowed : kBlocked;
        return;
    }
    lookAtHalves(box, seen, stop);
}

void BoxWalk::lookAtHalves(const ProgramBox& box, unsigned& seen, const base::StopToken& stop) {
    if (areaOf(box) > kFewElements) {
        base::throwIfStopped(stop);
        halves(box, [&](const ProgramBox& half) { look(half, seen, stop); });
        return;
    }
    for (std::int64_t query = box.queryLow; query <= box.queryHigh && seen != kBoth; ++query) {
        lookAtRow(box, query, box.keyHigh + 1, seen);
    }
}

MaskVerdict BoxWalk::classifyUndecided(const ProgramBox& box, const base::StopToken& stop) {
    unsigned seen = kNothing;
    // Partial blocks nearly always show it in their first or last row.
    const std::int64_t sampleEnd = std::min(box.keyHigh + 1, box.keyLow + kInterpreterWidth);
    lookAtRow(box, box.queryLow, sampleEnd, seen);
    if (seen != kBoth) {
        lookAtRow(box, box.queryHigh, sampleEnd, seen);
    }
    if (seen != kBoth) {
        lookAtHalves(box, seen, stop);
    }
    return seen == kAllowed ? MaskVerdict::Full : seen == kBlocked ? MaskVerdict::Empty : MaskVerdict::Undecided;
}

std::int64_t BoxWalk::count(const ProgramBox& box, const base::StopToken& stop) {
    const MaskVerdict found = verdict(box);
    if (found != MaskVerdict::Undecided) {
        return found == MaskVerdict::Full ? areaOf(box) : 0;
    }
    std::int64_t sum = 0;
    if (areaOf(box) > kFewElements) {
        base::throwIfStopped(stop);
        halves(box, [&](const ProgramBox& half) { sum += count(half, stop); });
        return sum;
    }
    for (std::int64_t query = box.queryLow; query <= box.queryHigh; ++query) {
        for (std::int64_t key = box.keyLow; key <= box.keyHigh; key += kInterpreterWidth) {
            const std::int64_t left = box.keyHigh + 1 - key;
            sum += allowedInRow(box, query, key, static_cast<int>(std::min<std::int64_t>(kInterpreterWidth, left)));
        }
    }
    return sum;
}

} // namespace vitrine::kernels
