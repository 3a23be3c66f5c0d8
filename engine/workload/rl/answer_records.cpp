// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/rl/answer_records.h"

#include <limits>
#include <map>

namespace vitrine::engine {

void recordAnswers(kernels::Tracer& tracer, std::int64_t step, std::span<const RolloutGroup> groups,
                   std::span<const std::pair<std::size_t, std::size_t>> places) {
    std::map<std::pair<std::size_t, std::size_t>, std::int64_t> rows;
    for (std::size_t row = 0; row < places.size(); ++row) {
        rows[places[row]] = static_cast<std::int64_t>(row);
    }
    base::RolloutAnswerEvent event;
    event.time = tracer.now();
    event.batch = step;
    for (std::size_t group = 0; group < groups.size(); ++group) {
        for (std::size_t place = 0; place < groups[group].answers.size(); ++place) {
            const GroupAnswer& answer = groups[group].answers[place];
            const auto row = rows.find({group, place});
            event.group = static_cast<std::int64_t>(group);
            event.place = static_cast<std::int64_t>(place);
            event.row = row == rows.end() ? -1 : row->second;
            event.tokens = answer.saidTokens();
            event.reward = answer.reward.value_or(std::numeric_limits<double>::quiet_NaN());
            event.judgeSeconds = answer.judgeSeconds;
            event.finish = tracer.intern(finishReasonName(answer.finish));
            tracer.record(event);
        }
    }
}

} // namespace vitrine::engine
