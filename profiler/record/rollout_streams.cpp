// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/trace.h"
#include "profiler/record/column_io.h"
#include "profiler/record/event_streams.h"

namespace vitrine::profiler {

namespace {

using Rollout = base::RolloutEvent;
using RolloutToken = base::RolloutTokenEvent;

} // namespace

void RolloutStream::write(ColumnWriter& w, std::span<const Event> rows) {
    w.timeColumn("time", rows, [](const Rollout& r) { return r.time; });
    w.signedColumn("batch", rows, [](const Rollout& r) { return r.batch; });
    w.signedColumn("row", rows, [](const Rollout& r) { return r.row; });
    w.signedColumn("prompt_tokens", rows, [](const Rollout& r) { return r.promptTokens; });
    w.realColumn("advantage", rows, [](const Rollout& r) { return r.advantage; });
}

void RolloutStream::read(const ChunkReader& in, std::vector<Event>& events) {
    const auto time = in.timeColumn("time");
    const auto batch = in.signedColumn("batch", 0);
    const auto at = in.signedColumn("row", 0);
    const auto prompt = in.signedColumn("prompt_tokens", 0);
    const auto advantage = in.realColumn("advantage");
    for (std::size_t row = 0; row < in.rows(); ++row) {
        events.push_back({time[row], batch[row], at[row], prompt[row], advantage[row]});
    }
}

void RolloutTokenStream::write(ColumnWriter& w, std::span<const Event> rows) {
    w.timeColumn("time", rows, [](const RolloutToken& r) { return r.time; });
    w.signedColumn("batch", rows, [](const RolloutToken& r) { return r.batch; });
    w.signedColumn("row", rows, [](const RolloutToken& r) { return r.row; });
    w.signedColumn("position", rows, [](const RolloutToken& r) { return r.position; });
    w.signedColumn("token", rows, [](const RolloutToken& r) { return r.token; });
    w.realColumn("old", rows, [](const RolloutToken& r) { return r.old; });
    w.realColumn("rollout", rows, [](const RolloutToken& r) { return r.rollout; });
    w.realColumn("reference", rows, [](const RolloutToken& r) { return r.reference; });
}

void RolloutTokenStream::read(const ChunkReader& in, std::vector<Event>& events) {
    const auto time = in.timeColumn("time");
    const auto batch = in.signedColumn("batch", 0);
    const auto at = in.signedColumn("row", 0);
    const auto position = in.signedColumn("position", 0);
    const auto token = in.signedColumn("token", 0);
    const auto old = in.realColumn("old");
    const auto rollout = in.realColumn("rollout");
    const auto reference = in.realColumn("reference");
    for (std::size_t row = 0; row < in.rows(); ++row) {
        if (token[row] > std::numeric_limits<std::int32_t>::max()) {
            throw in.damaged("token", "it is no id");
        }
        events.push_back({time[row], batch[row], at[row], position[row], static_cast<std::int32_t>(token[row]),
                          old[row], rollout[row], reference[row]});
    }
}

} // namespace vitrine::profiler
