// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "app/runner/recording/stored_timeline.h"
#include "app/runner/runs/run_export.h"
#include "base/error.h"
#include "base/output_file.h"
#include "base/trace.h"
#include "engine/checkpoint/output_check.h"
#include "engine/rl/policy/rollouts.h"
#include "profiler/timeline/run_events.h"
#include "profiler/timeline/run_timeline.h"

namespace vitrine::app {

namespace {

using base::RolloutEvent;
using base::RolloutTokenEvent;

/// The events of the newest batch, in order.
template <class Event> std::vector<Event> newestBatch(const profiler::RunTimeline& timeline, std::int64_t batch) {
    std::vector<Event> out;
    for (const Event& event : profiler::events<Event>(timeline)) {
        if (event.batch == batch) {
            out.push_back(event);
        }
    }
    return out;
}

/// A row has all its tokens, one for each position.
bool isWhole(const std::vector<RolloutEvent>& rows, const std::vector<RolloutTokenEvent>& tokens) {
    std::size_t next = 0;
    for (const RolloutEvent& row : rows) {
        std::int64_t position = 0;
        while (next < tokens.size() && tokens[next].row == row.row && tokens[next].position == position) {
            ++next;
            ++position;
        }
        if (position <= row.promptTokens) {
            return false;
        }
    }
    return next == tokens.size();
}

/// Whether the policy only read some tokens behind the prompts: messages of a user, which have no log-probabilities.
bool hasConversations(const std::vector<RolloutEvent>& rows, const std::vector<RolloutTokenEvent>& tokens) {
    bool some = false, none = false;
    std::size_t row = 0;
    for (const RolloutTokenEvent& token : tokens) {
        while (rows[row].row != token.row) {
            ++row;
        }
        if (token.position >= rows[row].promptTokens) {
            (std::isfinite(token.rollout) ? some : none) = true;
        }
    }
    return some && none;
}

engine::Rollouts rolloutsOf(const std::vector<RolloutEvent>& rows, const std::vector<RolloutTokenEvent>& tokens) {
    engine::Rollouts out;
    out.rows = static_cast<std::int64_t>(rows.size());
    for (const RolloutTokenEvent& token : tokens) {
        out.width = std::max(out.width, token.position + 1);
    }
    const auto size = static_cast<std::size_t>(out.rows * out.width);
    out.ids.resize(size);
    out.old.resize(size);
    out.rollout.resize(size);
    out.reference.resize(size);
    bool hasOld = true, hasRollout = true, hasReference = true;
    std::size_t next = 0;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        out.promptLengths.push_back(static_cast<std::int32_t>(rows[row].promptTokens));
        out.advantages.push_back(static_cast<float>(rows[row].advantage));
        std::int32_t length = 0;
        for (; next < tokens.size() && tokens[next].row == rows[row].row; ++next, ++length) {
            const RolloutTokenEvent& token = tokens[next];
            const std::size_t place = row * static_cast<std::size_t>(out.width) + static_cast<std::size_t>(length);
            out.ids[place] = token.token;
            if (length < out.promptLengths.back()) {
                continue;
            }
            const auto take = [place](double value, std::vector<float>& to, bool& has) {
                has = has && std::isfinite(value);
                to[place] = has ? static_cast<float>(value) : 0;
            };
            take(token.old, out.old, hasOld);
            take(token.rollout, out.rollout, hasRollout);
            take(token.reference, out.reference, hasReference);
        }
        out.lengths.push_back(length);
    }
    for (const auto& [has, values] :
         {std::pair{hasOld, &out.old}, std::pair{hasRollout, &out.rollout}, std::pair{hasReference, &out.reference}}) {
        if (!has) {
            values->clear();
        }
    }
    return out;
}

} // namespace

void exportRollouts(const sessions::SessionFile& session, sessions::RunId run, const std::string& file) {
    const sessions::RunInfo info = session.run(run);
    const auto timeline = loadTimeline(session, info.id);
    const auto all = profiler::events<RolloutEvent>(*timeline);
    if (all.empty()) {
        throw base::BadInput(fmt::format("run {}: has no rollouts; name a run of `vitrine rl` that was recorded", run));
    }
    const std::int64_t newest = std::ranges::max_element(all, {}, &RolloutEvent::batch)->batch;
    std::vector<RolloutEvent> rows = newestBatch<RolloutEvent>(*timeline, newest);
    std::vector<RolloutTokenEvent> tokens = newestBatch<RolloutTokenEvent>(*timeline, newest);
    std::ranges::stable_sort(rows, {}, &RolloutEvent::row);
    std::ranges::stable_sort(tokens, {},
                             [](const RolloutTokenEvent& token) { return std::pair(token.row, token.position); });
    if (!isWhole(rows, tokens)) {
        throw base::BadInput(
            fmt::format("run {}: tokens of its rollouts are missing; take the file that it was given", run));
    }
    if (hasConversations(rows, tokens)) {
        throw base::BadInput(fmt::format("run {}: its rollouts are conversations, and a file of rollouts does not say "
                                         "which of their tokens the policy said",
                                         run));
    }
    base::requireReplaceable(file, engine::kRolloutsOutput);
    engine::writeRollouts(file, rolloutsOf(rows, tokens));
}

} // namespace vitrine::app
