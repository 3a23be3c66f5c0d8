// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/sweep/sweep_table.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <tuple>

namespace vitrine::engine {

namespace {

/// Done, running, ended in another way, what has not begun.
int groupOf(QueueState state) {
    if (isDone(state)) {
        return 0;
    }
    if (state == QueueState::Running) {
        return 1;
    }
    return hasEnded(state) ? 2 : 3;
}

SweepRow rowOf(const QueuedRun& run, bool evaluated) {
    SweepRow out{run.number, run.run, run.state, run.values, {}, 0, {}, run.step, false};
    if (!run.evaluations.empty()) {
        out.value = run.evaluations.back().value;
        out.valueStep = run.evaluations.back().step;
    } else if (!evaluated && run.value && run.state != QueueState::Failed) {
        out.value = run.value;
        out.valueStep = run.step;
    }
    return out;
}

/// The values of the other rows at the row's step are those of their evaluations; without evaluations only runs of the
/// same length are compared.
std::optional<double> behindBestOf(const RunQueue& queue, const SweepTable& table, const SweepRow& row) {
    if (!row.value) {
        return std::nullopt;
    }
    std::optional<double> best;
    for (const SweepRow& other : table.rows) {
        std::optional<double> value;
        if (!table.evaluated) {
            value = other.valueStep == row.valueStep ? other.value : std::nullopt;
        } else if (const QueuedRun* run = queue.find(other.number)) {
            const auto same = std::ranges::find(run->evaluations, row.valueStep, &QueueEvaluation::step);
            value = same != run->evaluations.end() ? std::optional(same->value) : std::nullopt;
        }
        if (value && other.number != row.number && (!best || behindBy(*value, *best, table.rewards) < 0)) {
            best = value;
        }
    }
    return best ? std::optional(std::max(behindBy(*row.value, *best, table.rewards), 0.0)) : std::nullopt;
}

void countStates(SweepTable& table) {
    for (const SweepRow& row : table.rows) {
        table.done += isDone(row.state) ? 1 : 0;
        table.ended += hasEnded(row.state) ? 1 : 0;
        table.running += row.state == QueueState::Running ? 1 : 0;
        table.waiting += row.state == QueueState::Waiting ? 1 : 0;
        table.heldBack += row.state == QueueState::DoesNotFit || row.state == QueueState::Paused ? 1 : 0;
    }
}

/// "lr 2e-4 with rank 16"
std::string namedValues(const SweepValues& values) {
    std::string out;
    for (std::size_t i = 0; i < values.size(); ++i) {
        out += (i == 0 ? "" : i == 1 ? " with " : ", ") + sweepRunName({values[i]});
    }
    return out;
}

} // namespace

SweepTable sweepTable(const RunQueue& queue, std::string_view sweep) {
    SweepTable out;
    const std::vector<const QueuedRun*> runs = queue.runsOf(sweep);
    out.evaluated = std::ranges::any_of(runs, [](const QueuedRun* run) { return !run->evaluations.empty(); });
    out.rewards = std::ranges::any_of(runs, &QueuedRun::earnsRewards);
    for (const QueuedRun* run : runs) {
        out.rows.push_back(rowOf(*run, out.evaluated));
    }
    for (SweepRow& row : out.rows) {
        row.behindBest = behindBestOf(queue, out, row);
    }
    // A run that the rule ended was compared at an earlier step: it is done, and never the best.
    const auto rank = [&](const SweepRow& row) {
        return std::tuple(groupOf(row.state), row.state == QueueState::EndedByRule,
                          row.value ? behindBy(*row.value, 0, out.rewards) : std::numeric_limits<double>::infinity());
    };
    std::ranges::stable_sort(out.rows, [&](const SweepRow& a, const SweepRow& b) { return rank(a) < rank(b); });
    if (!out.rows.empty() && out.rows.front().state == QueueState::Finished && out.rows.front().value) {
        out.rows.front().best = true;
        out.rows.front().behindBest = 0;
    }
    countStates(out);
    return out;
}

std::string_view SweepTable::measure() const {
    return rewards ? (evaluated ? "evaluation reward" : "reward") : evaluated ? "evaluation loss" : "loss";
}

const SweepRow* SweepTable::bestRow() const {
    return !rows.empty() && rows.front().best ? &rows.front() : nullptr;
}

std::optional<double> SweepTable::toTheNext() const {
    const SweepRow* best = bestRow();
    if (best == nullptr) {
        return std::nullopt;
    }
    std::optional<double> next;
    for (const SweepRow& row : rows) {
        const bool comparable =
            &row != best && row.state == QueueState::Finished && row.value && row.valueStep == best->valueStep;
        if (comparable && (!next || behindBy(*row.value, *next, rewards) < 0)) {
            next = row.value;
        }
    }
    return next ? std::optional(behindBy(*next, *best->value, rewards)) : std::nullopt;
}

std::string sweepSentence(const RunQueue& queue, std::string_view sweep) {
    const SweepTable table = sweepTable(queue, sweep);
    if (table.rows.empty()) {
        return {};
    }
    const SweepRow* best = table.bestRow();
    if (best == nullptr) {
        const QueuedRun* running = queue.running();
        return running != nullptr && running->sweep == sweep
                   ? fmt::format("No run has ended yet; #{} is at step {} of {}.", running->number, running->step,
                                 running->steps)
                   : fmt::format("No run has ended with a {} yet.", table.rewards ? "reward" : "loss");
    }
    std::string out = fmt::format("{} is best{}: {} {:.3f} after {} step{}", namedValues(best->values),
                                  table.ended < table.rows.size() ? " so far" : "", table.measure(), *best->value,
                                  best->valueStep, best->valueStep == 1 ? "" : "s");
    if (const auto next = table.toTheNext()) {
        out += *next > 0 ? fmt::format(", {:.3f} {} the next", *next, table.rewards ? "above" : "below")
                         : fmt::format(", as {} as the next", table.rewards ? "high" : "low");
    }
    return out + ".";
}

} // namespace vitrine::engine
