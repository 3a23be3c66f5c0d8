// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/trace.h"
#include "profiler/record/column_io.h"
#include "profiler/record/event_streams.h"

namespace vitrine::profiler {
namespace {

using TrainStep = base::TrainingStepEvent;
using TrainMark = base::TrainingMarkEvent;

/// Times of a row that has a begin and an end.
std::vector<std::int64_t> endsAfter(const ChunkReader& in, const std::vector<std::int64_t>& begin) {
    std::vector<std::int64_t> end = in.timeColumn("end");
    for (std::size_t row = 0; row < end.size(); ++row) {
        if (end[row] < begin[row]) {
            throw in.damaged("end", "it lies before the begin");
        }
    }
    return end;
}

} // namespace

void TrainingStepStream::write(ColumnWriter& w, std::span<const Event> rows) {
    w.timeColumn("begin", rows, [](const TrainStep& r) { return r.begin; });
    w.timeColumn("end", rows, [](const TrainStep& r) { return r.end; });
    w.signedColumn("step", rows, [](const TrainStep& r) { return r.step; });
    w.signedColumn("tokens", rows, [](const TrainStep& r) { return r.tokens; });
    w.realColumn("loss", rows, [](const TrainStep& r) { return r.loss; });
    w.realColumn("learning_rate", rows, [](const TrainStep& r) { return r.learningRate; });
    w.realColumn("gradient_norm", rows, [](const TrainStep& r) { return r.gradientNorm; });
}

void TrainingStepStream::read(const ChunkReader& in, std::vector<Event>& events) {
    const auto begin = in.timeColumn("begin");
    const auto end = endsAfter(in, begin);
    const auto step = in.signedColumn("step", 0);
    const auto tokens = in.signedColumn("tokens", 0);
    const auto loss = in.realColumn("loss");
    const auto rate = in.realColumn("learning_rate");
    const auto norm = in.realColumn("gradient_norm");
    for (std::size_t row = 0; row < in.rows(); ++row) {
        events.push_back({begin[row], end[row], step[row], tokens[row], loss[row], rate[row], norm[row]});
    }
}

void TrainingMarkStream::write(ColumnWriter& w, std::span<const Event> rows) {
    w.timeColumn("begin", rows, [](const TrainMark& r) { return r.begin; });
    w.timeColumn("end", rows, [](const TrainMark& r) { return r.end; });
    w.signedColumn("step", rows, [](const TrainMark& r) { return r.step; });
    w.unsignedColumn("kind", rows, [](const TrainMark& r) { return static_cast<std::uint64_t>(r.kind); });
    w.realColumn("value", rows, [](const TrainMark& r) { return r.value; });
}

void TrainingMarkStream::read(const ChunkReader& in, std::vector<Event>& events) {
    const auto begin = in.timeColumn("begin");
    const auto end = endsAfter(in, begin);
    const auto step = in.signedColumn("step", 0);
    const auto kind = in.unsignedColumn("kind", base::kTrainingMarkCount - 1);
    const auto value = in.realColumn("value");
    for (std::size_t row = 0; row < in.rows(); ++row) {
        events.push_back({begin[row], end[row], step[row], static_cast<base::TrainingMark>(kind[row]), value[row]});
    }
}

} // namespace vitrine::profiler
