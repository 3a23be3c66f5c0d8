// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/memory_builder.h"

#include <algorithm>

namespace vitrine::profiler {

void MemoryBuilder::add(const EventBatch& batch) {
    history_.addTemplates(batch.templates);
    history_.addAllocations(batch.allocations);
    history_.addFrees(batch.frees);
    history_.addReplays(batch.replays);
    const auto byTime = [](const auto& event) { return event.time; };
    for (const auto& [order, event] : batch.outOfMemory) {
        if (event.device != rank_) {
            continue;
        }
        outOfMemory_.insertOrdered(event, byTime);
        failures_.insertOrdered({event.time, order}, byTime);
        see(event.time);
    }
    for (const auto& event : batch.allocations) {
        see(event.event.time);
    }
    for (const auto& event : batch.frees) {
        see(event.event.time);
    }
    for (const auto& event : batch.replays) {
        see(event.event.end);
    }
}

bool MemoryBuilder::addPyramid(const base::ColumnChunk& chunk) {
    const int level = pyramidLevel(chunk.stream, rank_);
    if (level < 0) {
        return false;
    }
    const std::vector<PyramidNode> nodes = decodePyramid(chunk);
    if (!eventsCover_) {
        stored_.add(static_cast<std::size_t>(level), nodes);
        chosen_.reset();
    }
    for (const PyramidNode& node : nodes) {
        see(node.timeEnd);
    }
    return true;
}

MemoryParts MemoryBuilder::parts(bool preview, base::TimeNs end, std::optional<base::TimeNs> incompleteFrom) {
    history_.settle(preview);
    MemoryParts parts;
    parts.history = history_.views();
    parts.outOfMemory = outOfMemory_.view();
    parts.failures = failures_.view();
    if (stored_.events() > history_.events()) {
        if (!chosen_) {
            chosen_ = std::make_shared<const StoredPyramid>(stored_.best());
        }
        parts.stored = chosen_;
    } else if (!preview) {
        eventsCover_ = true;
        stored_ = {};
        chosen_.reset();
    }
    parts.end = end;
    parts.incompleteFrom = incompleteFrom;
    return parts;
}

} // namespace vitrine::profiler
