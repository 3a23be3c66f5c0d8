// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The immutable timeline that MemoryTimelineBuilder hands out. All parts are views (profiler/record/block_vector.h); what only some
// readers need (stack layout, indices by id) is made when first asked for.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/record/block_vector.h"
#include "profiler/timeline/history.h"
#include "profiler/timeline/memory_timeline.h"
#include "profiler/timeline/scope_store.h"
#include "profiler/timeline/stack_layout.h"
#include "profiler/timeline/stored_pyramid.h"

namespace vitrine::profiler {

/// Between which memory records an allocation failed.
struct FailurePlace {
    base::TimeNs time = 0;
    std::uint64_t order = 0; ///< of the next memory record
};

struct TimelineParts {
    HistoryViews history;
    ScopeViews scopes;
    std::shared_ptr<const std::unordered_map<std::uint32_t, std::string>> strings;
    std::map<std::string, SharedView<CounterSample>, std::less<>> counters;
    SharedView<base::SpanEvent> spans;
    SharedView<base::TokenEvent> tokens;
    SharedView<base::BatchStepEvent> batchSteps;
    SharedView<base::SlotSpanEvent> slotSpans;
    SharedView<base::RequestEvent> requests;
    SharedView<base::KvPageEvent> kvPages;
    SharedView<base::GapEvent> gaps;
    SharedView<base::OutOfMemoryEvent> outOfMemory;
    SharedView<FailurePlace> failures;           ///< of each of them
    std::shared_ptr<const StoredPyramid> stored; ///< null when the events cover it
    base::TimeNs end = 0;                        ///< behind everything that was read
};

class TimelineSnapshot final : public MemoryTimeline {
public:
    explicit TimelineSnapshot(TimelineParts parts);
    ~TimelineSnapshot() override;
    TimelineSnapshot(const TimelineSnapshot&) = delete; // row views hold its address
    TimelineSnapshot& operator=(const TimelineSnapshot&) = delete;

    base::TimeNs begin() const override { return 0; }
    base::TimeNs end() const override { return parts_.end; }
    std::uint64_t events() const override;
    bool complete() const override { return parts_.stored == nullptr; }
    std::span<const base::GapEvent> gaps() const override;
    std::optional<base::TimeNs> incompleteFrom() const override;
    base::TimeNs eventTime(std::uint64_t index) const override;
    std::uint64_t eventsBefore(base::TimeNs time) const override;

    std::vector<MemoryColumn> query(base::TimeNs begin, base::TimeNs end, int columns) const override;
    std::vector<MemoryColumn> queryEvents(std::uint64_t first, std::uint64_t last, int columns) const override;
    base::CategoryBytes at(base::TimeNs time) const override;
    MemoryColumn peak(base::TimeNs begin, base::TimeNs end) const override;
    std::vector<base::TimeNs> peaks(std::size_t limit) const override;
    RangeTotals totals(base::TimeNs begin, base::TimeNs end) const override;
    std::vector<MemoryColumn> hostQuery(base::TimeNs begin, base::TimeNs end, int columns) const override;
    base::CategoryBytes hostAt(base::TimeNs time) const override;

    LazyRows<AllocationRow> allocations() const override;
    std::optional<std::size_t> findAllocation(std::uint64_t id) const override;
    std::vector<std::size_t> aliveAt(base::TimeNs time) const override;
    base::CategoryBytes atEvent(std::uint64_t count) const override;
    std::vector<std::size_t> aliveAtEvent(std::uint64_t count) const override;
    std::uint64_t eventsBeforeOutOfMemory(std::size_t index) const override;
    std::vector<AllocationShape> shapes(base::TimeNs begin, base::TimeNs end, double nsPerPixel, double bytesPerPixel,
                                        bool byAddress) const override;
    std::uint64_t stackedAddress(std::size_t row) const override;
    double stackedPart() const override;
    std::uint64_t compactAddress(std::uint64_t address) const override;
    std::uint64_t extent(bool byAddress) const override;

    LazyRows<ScopeRow> scopes() const override;
    LazyRows<ScopeRow> steps() const override;
    LazyRows<ScopeRow> phases() const override;
    const ScopeRow* scope(std::uint64_t id) const override;
    std::optional<ScopeRow> findScope(std::uint64_t id) const override;
    std::string scopePath(std::uint64_t id) const override;
    std::string_view text(std::uint32_t name) const override;

    std::span<const base::OutOfMemoryEvent> outOfMemory() const override;
    std::vector<std::pair<base::TimeNs, double>> counter(std::string_view name) const override;
    std::vector<std::string> counters() const override;
    std::vector<CounterColumn> counterColumns(std::string_view name, base::TimeNs begin, base::TimeNs end,
                                              int columns) const override;
    std::span<const base::SpanEvent> spans() const override;
    std::span<const base::TokenEvent> tokens() const override;
    std::span<const base::BatchStepEvent> batchSteps() const override;
    std::span<const base::SlotSpanEvent> slotSpans() const override;
    std::span<const base::RequestEvent> requests() const override;
    std::span<const base::KvPageEvent> kvPages() const override;

private:
    class AllocationSource;
    std::vector<std::size_t> largestFirst(std::vector<std::size_t> rows) const;
    class ScopeSource;
    struct Lazy;

    MemoryColumn window(const PyramidView& pyramid, base::TimeNs begin, std::uint64_t first, std::uint64_t last) const;
    std::vector<MemoryColumn> windows(const PyramidView& pyramid, base::TimeNs begin, base::TimeNs end,
                                      int columns) const;
    std::vector<MemoryColumn> marked(std::vector<MemoryColumn> columns, base::TimeNs begin, base::TimeNs end) const;
    BlockBox box(std::uint32_t row, bool byAddress) const;
    AllocationRow allocation(std::size_t index) const;
    ScopeRow scopeRow(const ScopeRef& ref) const;
    std::optional<ScopeRef> scopeRef(std::uint64_t id) const;
    std::optional<std::uint32_t> replayOf(std::uint64_t id) const;
    const StackLayout& stack() const;

    TimelineParts parts_;
    std::unique_ptr<Lazy> lazy_;
};

} // namespace vitrine::profiler
