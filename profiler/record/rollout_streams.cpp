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
using RolloutAnswer = base::RolloutAnswerEvent;

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
    w.optionalColumn("text", rows, [](const RolloutToken& r) { return r.text.value; });
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
    const auto text = in.optionalColumn("text", kMaxName);
    for (std::size_t row = 0; row < in.rows(); ++row) {
        if (token[row] > std::numeric_limits<std::int32_t>::max()) {
            throw in.damaged("token", "it is no id");
        }
        events.push_back({time[row], batch[row], at[row], position[row], static_cast<std::int32_t>(token[row]),
                          old[row], rollout[row], reference[row],
                          base::StringId{static_cast<std::uint32_t>(text[row])}});
    }
}

void RolloutAnswerStream::write(ColumnWriter& w, std::span<const Event> rows) {
    w.timeColumn("time", rows, [](const RolloutAnswer& r) { return r.time; });
    w.signedColumn("batch", rows, [](const RolloutAnswer& r) { return r.batch; });
    w.signedColumn("group", rows, [](const RolloutAnswer& r) { return r.group; });
    w.signedColumn("place", rows, [](const RolloutAnswer& r) { return r.place; });
    w.signedColumn("row", rows, [](const RolloutAnswer& r) { return r.row; });
    w.signedColumn("tokens", rows, [](const RolloutAnswer& r) { return r.tokens; });
    w.realColumn("reward", rows, [](const RolloutAnswer& r) { return r.reward; });
    w.realColumn("judge_seconds", rows, [](const RolloutAnswer& r) { return r.judgeSeconds; });
    w.unsignedColumn("finish", rows, [](const RolloutAnswer& r) { return r.finish.value; });
}

void RolloutAnswerStream::read(const ChunkReader& in, std::vector<Event>& events) {
    const auto time = in.timeColumn("time");
    const auto batch = in.signedColumn("batch", 0);
    const auto group = in.signedColumn("group", 0);
    const auto place = in.signedColumn("place", 0);
    const auto at = in.signedColumn("row", -1);
    const auto tokens = in.signedColumn("tokens", 0);
    const auto reward = in.realColumn("reward");
    const auto judge = in.realColumn("judge_seconds");
    const auto finish = in.unsignedColumn("finish", kMaxName);
    for (std::size_t row = 0; row < in.rows(); ++row) {
        events.push_back({time[row], batch[row], group[row], place[row], at[row], tokens[row], reward[row], judge[row],
                          base::StringId{static_cast<std::uint32_t>(finish[row])}});
    }
}

} // namespace vitrine::profiler
