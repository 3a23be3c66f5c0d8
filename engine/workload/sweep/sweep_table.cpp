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
        out.loss = run.evaluations.back().loss;
        out.lossStep = run.evaluations.back().step;
    } else if (!evaluated && run.loss && run.state != QueueState::Failed) {
        out.loss = run.loss;
        out.lossStep = run.step;
    }
    return out;
}

/// The losses of the other rows at the row's step are those of their evaluations; without evaluations only runs of the
/// same length are compared.
std::optional<double> aboveBestOf(const RunQueue& queue, const std::vector<SweepRow>& rows, const SweepRow& row,
                                  bool evaluated) {
    if (!row.loss) {
        return std::nullopt;
    }
    std::optional<double> best;
    for (const SweepRow& other : rows) {
        std::optional<double> loss;
        if (!evaluated) {
            loss = other.lossStep == row.lossStep ? other.loss : std::nullopt;
        } else if (const QueuedRun* run = queue.find(other.number)) {
            const auto same = std::ranges::find(run->evaluations, row.lossStep, &QueueEvaluation::step);
            loss = same != run->evaluations.end() ? std::optional(same->loss) : std::nullopt;
        }
        if (loss && other.number != row.number && (!best || *loss < *best)) {
            best = loss;
        }
    }
    return best ? std::optional(std::max(*row.loss - *best, 0.0)) : std::nullopt;
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
    for (const QueuedRun* run : runs) {
        out.rows.push_back(rowOf(*run, out.evaluated));
    }
    for (SweepRow& row : out.rows) {
        row.aboveBest = aboveBestOf(queue, out.rows, row, out.evaluated);
    }
    // A run that the rule ended was compared at an earlier step: it is done, and never the best.
    const auto rank = [](const SweepRow& row) {
        return std::tuple(groupOf(row.state), row.state == QueueState::EndedByRule,
                          row.loss.value_or(std::numeric_limits<double>::infinity()));
    };
    std::ranges::stable_sort(out.rows, [&](const SweepRow& a, const SweepRow& b) { return rank(a) < rank(b); });
    if (!out.rows.empty() && out.rows.front().state == QueueState::Finished && out.rows.front().loss) {
        out.rows.front().best = true;
        out.rows.front().aboveBest = 0;
    }
    countStates(out);
    return out;
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
            &row != best && row.state == QueueState::Finished && row.loss && row.lossStep == best->lossStep;
        if (comparable && (!next || *row.loss < *next)) {
            next = row.loss;
        }
    }
    return next ? std::optional(*next - *best->loss) : std::nullopt;
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
                   : std::string("No run has ended with a loss yet.");
    }
    std::string out =
        fmt::format("{} is best{}: {} {:.3f} after {} step{}", namedValues(best->values),
                    table.ended < table.rows.size() ? " so far" : "", table.evaluated ? "evaluation loss" : "loss",
                    *best->loss, best->lossStep, best->lossStep == 1 ? "" : "s");
    if (const auto next = table.toTheNext()) {
        out += *next > 0 ? fmt::format(", {:.3f} below the next", *next) : std::string(", as low as the next");
    }
    return out + ".";
}

} // namespace vitrine::engine
