// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <limits>

#include "profiler/record/column_io.h"
#include "profiler/record/event_streams.h"

namespace vitrine::profiler {
namespace {

using Step = base::BatchStepEvent;
using Slot = base::SlotSpanEvent;
using Request = base::RequestEvent;
using Page = base::KvPageEvent;

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

void BatchStepStream::write(ColumnWriter& w, std::span<const Event> rows) {
    w.timeColumn("begin", rows, [](const Step& r) { return r.begin; });
    w.timeColumn("end", rows, [](const Step& r) { return r.end; });
    for (const StepCount& count : kStepCounts) {
        w.signedColumn(count.column, rows,
                       [&](const Step& r) { return count.wide != nullptr ? r.*count.wide : r.*count.narrow; });
    }
}

void BatchStepStream::read(const ChunkReader& in, std::vector<Event>& events) {
    const auto begin = in.timeColumn("begin");
    const auto end = in.timeColumn("end");
    const std::size_t first = events.size();
    events.resize(first + in.rows());
    for (std::size_t row = 0; row < in.rows(); ++row) {
        if (end[row] < begin[row]) {
            throw in.damaged("end", "a step ends before it begins");
        }
        events[first + row].begin = begin[row];
        events[first + row].end = end[row];
    }
    for (const StepCount& count : kStepCounts) {
        const auto values = in.signedColumn(count.column, 0, count.wide != nullptr ? kMaxCount : kMaxInt32);
        for (std::size_t row = 0; row < in.rows(); ++row) {
            Step& step = events[first + row];
            if (count.wide != nullptr) {
                step.*count.wide = values[row];
            } else {
                step.*count.narrow = static_cast<std::int32_t>(values[row]);
            }
        }
    }
}

void SlotSpanStream::write(ColumnWriter& w, std::span<const Event> rows) {
    w.timeColumn("begin", rows, [](const Slot& r) { return r.begin; });
    w.timeColumn("end", rows, [](const Slot& r) { return r.end; });
    w.signedColumn("first_step", rows, [](const Slot& r) { return r.firstStep; });
    w.signedColumn("steps", rows, [](const Slot& r) { return r.steps; });
    w.signedColumn("slot", rows, [](const Slot& r) { return r.slot; });
    w.signedColumn("request", rows, [](const Slot& r) { return r.request; });
    w.unsignedColumn("state", rows, [](const Slot& r) { return static_cast<std::uint64_t>(r.state); });
    w.signedColumn("tokens", rows, [](const Slot& r) { return r.tokens; });
    w.signedColumn("padding", rows, [](const Slot& r) { return r.padding; });
}

void SlotSpanStream::read(const ChunkReader& in, std::vector<Event>& events) {
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
        events.push_back({begin[row], end[row], firstStep[row], steps[row], static_cast<std::int32_t>(slot[row]),
                          static_cast<std::int32_t>(request[row]), static_cast<base::SlotState>(state[row]),
                          tokens[row], padding[row]});
    }
}

void RequestStream::write(ColumnWriter& w, std::span<const Event> rows) {
    w.timeColumn("time", rows, [](const Request& r) { return r.time; });
    if (std::ranges::any_of(rows, [](const Request& r) { return r.time < 0; })) {
        w.signedColumn("before", rows, [](const Request& r) { return std::clamp<base::TimeNs>(-r.time, 0, kMaxTime); });
    }
    w.signedColumn("request", rows, [](const Request& r) { return r.request; });
    w.unsignedColumn("phase", rows, [](const Request& r) { return static_cast<std::uint64_t>(r.phase); });
    w.signedColumn("slot", rows, [](const Request& r) { return r.slot; });
    w.signedColumn("step", rows, [](const Request& r) { return r.step; });
    w.signedColumn("tokens", rows, [](const Request& r) { return r.tokens; });
    w.unsignedColumn("reason", rows, [](const Request& r) { return r.reason.value; });
    if (std::ranges::any_of(rows, [](const Request& r) { return r.sequence >= 0; })) {
        w.signedColumn("sequence", rows, [](const Request& r) { return r.sequence; });
    }
}

void RequestStream::read(const ChunkReader& in, std::vector<Event>& events) {
    auto time = in.timeColumn("time");
    if (in.has("before")) {
        const auto before = in.timeColumn("before");
        for (std::size_t row = 0; row < in.rows(); ++row) {
            time[row] -= before[row];
        }
    }
    const auto request = in.signedColumn("request", 0, kMaxInt32);
    const auto phase = in.unsignedColumn("phase", base::kRequestChangeCount - 1);
    const auto slot = in.signedColumn("slot", -1, kMaxInt32);
    const auto step = in.signedColumn("step", -1, kMaxCount);
    const auto tokens = in.signedColumn("tokens", 0, kMaxCount);
    const auto reason = in.unsignedColumn("reason", kMaxName);
    const std::vector<std::int64_t> sequence =
        in.has("sequence") ? in.signedColumn("sequence", -1, kMaxInt32) : std::vector<std::int64_t>(in.rows(), -1);
    for (std::size_t row = 0; row < in.rows(); ++row) {
        events.push_back({time[row], static_cast<std::int32_t>(request[row]),
                          static_cast<base::RequestChange>(phase[row]), static_cast<std::int32_t>(slot[row]), step[row],
                          tokens[row], base::StringId{static_cast<std::uint32_t>(reason[row])},
                          static_cast<std::int32_t>(sequence[row])});
    }
}

void KvPageStream::write(ColumnWriter& w, std::span<const Event> rows) {
    w.timeColumn("time", rows, [](const Page& r) { return r.time; });
    w.signedColumn("group", rows, [](const Page& r) { return r.group; });
    w.signedColumn("page", rows, [](const Page& r) { return r.page; });
    w.unsignedColumn("state", rows, [](const Page& r) { return static_cast<std::uint64_t>(r.state); });
    w.signedColumn("owner", rows, [](const Page& r) { return r.owner; });
    w.signedColumn("sequences", rows, [](const Page& r) { return r.sequences; });
    w.optionalColumn(kDeviceColumn, rows, [](const Page& r) { return r.device; });
}

void KvPageStream::read(const ChunkReader& in, std::vector<Event>& events) {
    const auto time = in.timeColumn("time");
    const auto group = in.signedColumn("group", 0, kMaxInt32);
    const auto page = in.signedColumn("page", 0, kMaxInt32);
    const auto state = in.unsignedColumn("state", base::kPageStateCount - 1);
    const auto owner = in.signedColumn("owner", -1, kMaxInt32);
    const auto sequences = in.signedColumn("sequences", 0, kMaxInt32);
    const auto device = in.optionalColumn(kDeviceColumn, kMaxDevice);
    for (std::size_t row = 0; row < in.rows(); ++row) {
        events.push_back({time[row], static_cast<std::int32_t>(group[row]), static_cast<std::int32_t>(page[row]),
                          static_cast<base::PageState>(state[row]), static_cast<std::int32_t>(owner[row]),
                          static_cast<std::int32_t>(sequences[row]), static_cast<base::DeviceRank>(device[row])});
    }
}

} // namespace vitrine::profiler
