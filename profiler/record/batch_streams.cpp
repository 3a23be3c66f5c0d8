// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/record/batch_streams.h"

#include <algorithm>
#include <limits>

#include "profiler/record/stream_writer.h"

namespace vitrine::profiler {
namespace {

using Step = base::BatchStepEvent;
using Slot = base::SlotSpanEvent;
using Request = base::RequestEvent;
using Page = base::KvPageEvent;

constexpr std::uint64_t kMaxName = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxCount = std::int64_t{1} << 53;

/// Columns of BatchStepEvent that are counts: from 0 on.
struct StepCount {
    std::string_view column;
    std::int32_t Step::* narrow = nullptr;
    std::int64_t Step::* wide = nullptr;
};
constexpr StepCount kStepCounts[] = {
    {"index", nullptr, &Step::index},
    {"decode_rows", &Step::decodeRows},
    {"prefill_rows", &Step::prefillRows},
    {"padding_rows", &Step::paddingRows},
    {"prefill_tokens", nullptr, &Step::prefillTokens},
    {"padding_tokens", nullptr, &Step::paddingTokens},
    {"sampled", &Step::sampled},
    {"queued", &Step::queued},
    {"running", &Step::running},
    {"preempted", &Step::preempted},
    {"used_pages", nullptr, &Step::usedPages},
    {"shared_pages", nullptr, &Step::sharedPages},
    {"cached_pages", nullptr, &Step::cachedPages},
    {"free_pages", nullptr, &Step::freePages},
};

} // namespace

void encodeServing(const EventBatch& batch, ChunkNumbers& numbers, std::vector<base::ColumnChunk>& out) {
    encodeStream<Step>(kBatchStepsStream, batch.batchSteps, numbers, out, [](ColumnWriter& w, auto rows) {
        w.timeColumn("begin", rows, [](const Step& r) { return r.begin; });
        w.timeColumn("end", rows, [](const Step& r) { return r.end; });
        for (const StepCount& count : kStepCounts) {
            w.signedColumn(count.column, rows,
                           [&](const Step& r) { return count.wide != nullptr ? r.*count.wide : r.*count.narrow; });
        }
    });
    encodeStream<Slot>(kBatchSlotsStream, batch.slotSpans, numbers, out, [](ColumnWriter& w, auto rows) {
        w.timeColumn("begin", rows, [](const Slot& r) { return r.begin; });
        w.timeColumn("end", rows, [](const Slot& r) { return r.end; });
        w.signedColumn("first_step", rows, [](const Slot& r) { return r.firstStep; });
        w.signedColumn("steps", rows, [](const Slot& r) { return r.steps; });
        w.signedColumn("slot", rows, [](const Slot& r) { return r.slot; });
        w.signedColumn("request", rows, [](const Slot& r) { return r.request; });
        w.unsignedColumn("state", rows, [](const Slot& r) { return static_cast<std::uint64_t>(r.state); });
        w.signedColumn("tokens", rows, [](const Slot& r) { return r.tokens; });
        w.signedColumn("padding", rows, [](const Slot& r) { return r.padding; });
    });
    encodeStream<Request>(kBatchRequestsStream, batch.requests, numbers, out, [](ColumnWriter& w, auto rows) {
        w.timeColumn("time", rows, [](const Request& r) { return r.time; });
        if (std::ranges::any_of(rows, [](const Request& r) { return r.time < 0; })) {
            w.signedColumn("before", rows,
                           [](const Request& r) { return std::clamp<base::TimeNs>(-r.time, 0, kMaxTime); });
        }
        w.signedColumn("request", rows, [](const Request& r) { return r.request; });
        w.unsignedColumn("phase", rows, [](const Request& r) { return static_cast<std::uint64_t>(r.phase); });
        w.signedColumn("slot", rows, [](const Request& r) { return r.slot; });
        w.signedColumn("step", rows, [](const Request& r) { return r.step; });
        w.signedColumn("tokens", rows, [](const Request& r) { return r.tokens; });
        w.unsignedColumn("reason", rows, [](const Request& r) { return r.reason.value; });
    });
    encodeStream<Page>(kKvPagesStream, batch.kvPages, numbers, out, [](ColumnWriter& w, auto rows) {
        w.timeColumn("time", rows, [](const Page& r) { return r.time; });
        w.signedColumn("group", rows, [](const Page& r) { return r.group; });
        w.signedColumn("page", rows, [](const Page& r) { return r.page; });
        w.unsignedColumn("state", rows, [](const Page& r) { return static_cast<std::uint64_t>(r.state); });
        w.signedColumn("owner", rows, [](const Page& r) { return r.owner; });
        w.signedColumn("sequences", rows, [](const Page& r) { return r.sequences; });
    });
}

void decodeBatchSteps(const ChunkReader& in, EventBatch& batch) {
    const auto begin = in.timeColumn("begin");
    const auto end = in.timeColumn("end");
    const std::size_t first = batch.batchSteps.size();
    batch.batchSteps.resize(first + in.rows());
    for (std::size_t row = 0; row < in.rows(); ++row) {
        if (end[row] < begin[row]) {
            throw in.damaged("end", "a step ends before it begins");
        }
        batch.batchSteps[first + row].begin = begin[row];
        batch.batchSteps[first + row].end = end[row];
    }
    for (const StepCount& count : kStepCounts) {
        const auto values = in.signedColumn(count.column, 0, count.wide != nullptr ? kMaxCount : kMaxInt32);
        for (std::size_t row = 0; row < in.rows(); ++row) {
            Step& step = batch.batchSteps[first + row];
            if (count.wide != nullptr) {
                step.*count.wide = values[row];
            } else {
                step.*count.narrow = static_cast<std::int32_t>(values[row]);
            }
        }
    }
}

void decodeSlotSpans(const ChunkReader& in, EventBatch& batch) {
    const auto begin = in.timeColumn("begin");
    const auto end = in.timeColumn("end");
    const auto firstStep = in.signedColumn("first_step", 0, kMaxCount);
    const auto steps = in.signedColumn("steps", 1, kMaxCount);
    const auto slot = in.signedColumn("slot", 0, kMaxInt32);
    const auto request = in.signedColumn("request", -1, kMaxInt32);
    const auto state = in.unsignedColumn("state", base::kSlotStateCount - 1);
    const auto tokens = in.signedColumn("tokens", 0, kMaxCount);
    const auto padding = in.signedColumn("padding", 0, kMaxCount);
    for (std::size_t row = 0; row < in.rows(); ++row) {
        if (end[row] < begin[row]) {
            throw in.damaged("end", "a slot's span ends before it begins");
        }
        batch.slotSpans.push_back({begin[row], end[row], firstStep[row], steps[row],
                                   static_cast<std::int32_t>(slot[row]), static_cast<std::int32_t>(request[row]),
                                   static_cast<base::SlotState>(state[row]), tokens[row], padding[row]});
    }
}

void decodeRequests(const ChunkReader& in, EventBatch& batch) {
    auto time = in.timeColumn("time");
    if (in.has("before")) {
        const auto before = in.timeColumn("before");
        for (std::size_t row = 0; row < in.rows(); ++row) {
            time[row] -= before[row];
        }
    }
    const auto request = in.signedColumn("request", 0, kMaxInt32);
    const auto phase = in.unsignedColumn("phase", base::kRequestPhaseCount - 1);
    const auto slot = in.signedColumn("slot", -1, kMaxInt32);
    const auto step = in.signedColumn("step", -1, kMaxCount);
    const auto tokens = in.signedColumn("tokens", 0, kMaxCount);
    const auto reason = in.unsignedColumn("reason", kMaxName);
    for (std::size_t row = 0; row < in.rows(); ++row) {
        batch.requests.push_back({time[row], static_cast<std::int32_t>(request[row]),
                                  static_cast<base::RequestPhase>(phase[row]), static_cast<std::int32_t>(slot[row]),
                                  step[row], tokens[row], base::StringId{static_cast<std::uint32_t>(reason[row])}});
    }
}

void decodeKvPages(const ChunkReader& in, EventBatch& batch) {
    const auto time = in.timeColumn("time");
    const auto group = in.signedColumn("group", 0, kMaxInt32);
    const auto page = in.signedColumn("page", 0, kMaxInt32);
    const auto state = in.unsignedColumn("state", base::kPageStateCount - 1);
    const auto owner = in.signedColumn("owner", -1, kMaxInt32);
    const auto sequences = in.signedColumn("sequences", 0, kMaxInt32);
    for (std::size_t row = 0; row < in.rows(); ++row) {
        batch.kvPages.push_back({time[row], static_cast<std::int32_t>(group[row]), static_cast<std::int32_t>(page[row]),
                                 static_cast<base::PageState>(state[row]), static_cast<std::int32_t>(owner[row]),
                                 static_cast<std::int32_t>(sequences[row])});
    }
}

} // namespace vitrine::profiler
