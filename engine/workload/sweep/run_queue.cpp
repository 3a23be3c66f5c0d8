// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/sweep/run_queue.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_values.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/workload_table.h"

namespace vitrine::engine {

namespace {

constexpr std::array<std::string_view, kQueueStates> kStateWords = {
    "waiting", "running", "does not fit", "paused", "finished", "ended by the rule", "failed", "ended by you"};

constexpr double kMsInSecond = 1000;

bool hasNotBegun(QueueState state) {
    return state == QueueState::Waiting || state == QueueState::DoesNotFit || state == QueueState::Paused;
}

} // namespace

std::string_view queueStateWords(QueueState state) {
    return kStateWords[static_cast<std::size_t>(state)];
}

bool hasEnded(QueueState state) {
    return state >= QueueState::Finished;
}

bool isDone(QueueState state) {
    return state == QueueState::Finished || state == QueueState::EndedByRule;
}

bool canBecome(QueueState from, QueueState to) {
    switch (from) {
    case QueueState::Waiting:
        return to == QueueState::Running || to == QueueState::DoesNotFit || to == QueueState::Paused;
    case QueueState::Running:
        return hasEnded(to) || to == QueueState::Paused;
    case QueueState::DoesNotFit:
        return to == QueueState::Waiting || to == QueueState::Paused;
    case QueueState::Paused:
        return to == QueueState::Waiting || to == QueueState::DoesNotFit || to == QueueState::EndedByUser;
    case QueueState::Failed: // bringBack()
        return to == QueueState::Paused;
    default:
        return false;
    }
}

bool RunQueue::become(QueuedRun& run, QueueState state) {
    if (!canBecome(run.state, state)) {
        return false;
    }
    run.state = state;
    return true;
}

void RunQueue::pause(std::string reason) {
    paused_ = true;
    pauseAfterRun_ = false;
    pauseReason_ = std::move(reason);
}

std::int64_t RunQueue::add(QueuedRun run) {
    run.number = ++last_;
    run.state = QueueState::Waiting;
    run.earnsRewards = engine::earnsRewards(base::parsedObject(run.spec));
    runs_.push_back(std::move(run));
    return last_;
}

std::string RunQueue::addSweep(SweepPlan plan) {
    const std::vector<SweepRun> all = sweepRuns(plan);
    const std::string name = plan.name;
    for (int number = 2; sweeps_.contains(plan.name); ++number) {
        plan.name = fmt::format("{} {}", name, number);
    }
    for (const SweepRun& one : all) {
        QueuedRun run;
        run.name = sweepRunName(one.values);
        run.sweep = plan.name;
        run.values = one.values;
        run.spec = one.experiment.jsonText();
        add(std::move(run));
    }
    std::string given = plan.name;
    sweeps_.emplace(given, std::move(plan));
    return given;
}

bool RunQueue::remove(std::int64_t number) {
    return std::erase_if(runs_, [&](const QueuedRun& run) { return run.number == number && hasNotBegun(run.state); }) >
           0;
}

bool RunQueue::move(std::int64_t number, std::size_t place) {
    std::vector<std::size_t> places; // in runs_, of those that have not begun
    std::optional<std::size_t> from;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
        if (hasNotBegun(runs_[i].state)) {
            if (runs_[i].number == number) {
                from = places.size();
            }
            places.push_back(i);
        }
    }
    if (!from) {
        return false;
    }
    for (std::size_t to = std::min(place, places.size() - 1); *from != to;) {
        const std::size_t next = *from < to ? *from + 1 : *from - 1;
        std::swap(runs_[places[*from]], runs_[places[next]]);
        from = next;
    }
    return true;
}

bool RunQueue::edit(std::int64_t number, const std::string& spec) {
    QueuedRun* run = find(number);
    if (run == nullptr || !hasNotBegun(run->state)) {
        return false;
    }
    run->spec = spec;
    run->price.reset();
    if (run->state == QueueState::DoesNotFit) {
        become(*run, QueueState::Waiting);
    }
    return true;
}

bool RunQueue::setPrice(std::int64_t number, const QueuePrice& price) {
    QueuedRun* run = find(number);
    if (run == nullptr || !hasNotBegun(run->state)) {
        return false;
    }
    run->price = price;
    const bool fits = price.fits || !price.error.empty(); // what cannot be planned has its turn
    if (run->state != QueueState::Paused && (run->state == QueueState::Waiting) != fits) {
        become(*run, fits ? QueueState::Waiting : QueueState::DoesNotFit);
    }
    return true;
}

bool RunQueue::hold(std::int64_t number) {
    QueuedRun* run = find(number);
    return run != nullptr && hasNotBegun(run->state) && become(*run, QueueState::Paused);
}

bool RunQueue::release(std::int64_t number) {
    QueuedRun* run = find(number);
    if (run == nullptr || run->state != QueueState::Paused) {
        return false;
    }
    run->interrupted = false;
    const bool tooLarge = run->price && !run->price->fits && run->price->error.empty();
    return become(*run, tooLarge ? QueueState::DoesNotFit : QueueState::Waiting);
}

bool RunQueue::setRule(const std::string& sweep, const std::optional<StopRule>& rule) {
    const auto found = sweeps_.find(sweep);
    if (found == sweeps_.end()) {
        return false;
    }
    found->second.rule = rule;
    return true;
}

void RunQueue::numberAbove(std::int64_t number) {
    last_ = std::max(last_, number);
}

std::optional<std::int64_t> RunQueue::next() const {
    if (paused_ || running() != nullptr) {
        return std::nullopt;
    }
    const auto waiting =
        std::ranges::find_if(runs_, [](const QueuedRun& run) { return run.state == QueueState::Waiting; });
    return waiting == runs_.end() ? std::nullopt : std::optional(waiting->number);
}

bool RunQueue::start(std::int64_t number, std::int64_t nowMs) {
    QueuedRun* run = find(number);
    if (run == nullptr || running() != nullptr || !become(*run, QueueState::Running)) {
        return false;
    }
    run->startedMs = nowMs;
    run->endedMs = 0;
    run->interrupted = false;
    run->lost = false;
    run->reason.clear();
    return true;
}

bool RunQueue::end(std::int64_t number, QueueState state, const std::string& reason, std::int64_t nowMs) {
    QueuedRun* run = find(number);
    if (run == nullptr || !hasEnded(state) || !become(*run, state)) {
        return false;
    }
    run->endedMs = nowMs;
    run->interrupted = false;
    run->reason = reason;
    const bool failed = state == QueueState::Failed;
    failures_ = failed ? failures_ + 1 : 0;
    if (failed && failures_ >= kMostFailures) {
        pause(fmt::format("{} runs failed one after the other", failures_));
    } else if (failed && !goOn_) {
        pause(fmt::format("#{} failed", number));
    } else if (pauseAfterRun_) {
        pause({});
    }
    return true;
}

void RunQueue::pauseAfterRun(bool on) {
    if (on && running() == nullptr) {
        pause({});
    } else {
        pauseAfterRun_ = on;
    }
}

void RunQueue::resume() {
    paused_ = false;
    pauseAfterRun_ = false;
    pauseReason_.clear();
    failures_ = 0;
}

void RunQueue::recover() {
    bool open = false;
    for (QueuedRun& run : runs_) {
        if (run.state == QueueState::Running) {
            run.interrupted = become(run, QueueState::Paused);
            pauseReason_ = fmt::format("#{} was interrupted", run.number);
        }
        open = open || !hasEnded(run.state);
    }
    paused_ = paused_ || open;
    pauseAfterRun_ = false;
}

bool RunQueue::interrupt(std::int64_t number) {
    QueuedRun* run = find(number);
    return run != nullptr && run->state == QueueState::Running && (run->interrupted = become(*run, QueueState::Paused));
}

bool RunQueue::bringBack(std::int64_t number) {
    QueuedRun* run = find(number);
    if (run == nullptr || !run->lost || run->state != QueueState::Failed) {
        return false;
    }
    run->lost = false;
    run->reason.clear();
    return run->interrupted = become(*run, QueueState::Paused);
}

const QueuedRun* RunQueue::find(std::int64_t number) const {
    const auto found = std::ranges::find(runs_, number, &QueuedRun::number);
    return found == runs_.end() ? nullptr : &*found;
}

QueuedRun* RunQueue::find(std::int64_t number) {
    return const_cast<QueuedRun*>(std::as_const(*this).find(number));
}

const QueuedRun* RunQueue::running() const {
    const auto found = std::ranges::find(runs_, QueueState::Running, &QueuedRun::state);
    return found == runs_.end() ? nullptr : &*found;
}

std::vector<const QueuedRun*> RunQueue::runsOf(std::string_view sweep) const {
    std::vector<const QueuedRun*> out;
    for (const QueuedRun& run : runs_) {
        if (!sweep.empty() && run.sweep == sweep) {
            out.push_back(&run);
        }
    }
    return out;
}

double secondsLeft(const QueuedRun& run, std::int64_t nowMs) {
    if (!run.price || run.price->seconds <= 0) {
        return 0;
    }
    const double gone = static_cast<double>(nowMs - run.startedMs) / kMsInSecond;
    return run.state == QueueState::Running ? std::max(run.price->seconds - gone, 0.0) : run.price->seconds;
}

std::vector<QueueTime> RunQueue::clock(std::int64_t nowMs) const {
    std::vector<QueueTime> out;
    std::int64_t at = nowMs;
    bool known = true;
    const auto append = [&](const QueuedRun& run) {
        known = known && run.price && run.price->seconds > 0;
        const std::int64_t begin = run.state == QueueState::Running ? run.startedMs : at;
        at += static_cast<std::int64_t>(secondsLeft(run, nowMs) * kMsInSecond);
        out.push_back({run.number, begin, at, known});
    };
    if (const QueuedRun* run = running()) {
        append(*run);
    }
    for (const QueuedRun& run : runs_) {
        if (run.state == QueueState::Waiting) {
            append(run);
        }
    }
    return out;
}

bool earnsRewards(const nlohmann::json& spec) {
    const Workload* workload = findWorkload(base::textAt(spec, "workload"));
    const auto hasRewards = [](const ResultSet& set) {
        return std::ranges::find(set, &result::kEvalRewards) != set.end();
    };
    return workload != nullptr && !spec.contains("rollouts") && std::ranges::any_of(workload->results, hasRewards);
}

double behindBy(double value, double other, bool rewards) {
    return rewards ? other - value : value - other;
}

std::optional<RuleVerdict> RunQueue::verdict(std::int64_t number) const {
    const QueuedRun* run = find(number);
    if (run == nullptr || run->sweep.empty() || run->evaluations.empty()) {
        return std::nullopt;
    }
    const QueueEvaluation newest = run->evaluations.back();
    std::optional<double> best;
    RuleVerdict out{newest.step, newest.value, 0, 0, 0, false};
    for (const QueuedRun* other : runsOf(run->sweep)) {
        const auto same = std::ranges::find(other->evaluations, newest.step, &QueueEvaluation::step);
        if (other != run && same != other->evaluations.end() &&
            (!best || behindBy(same->value, *best, run->earnsRewards) < 0)) {
            best = same->value;
            out.bestNumber = other->number;
        }
    }
    if (!best) {
        return std::nullopt;
    }
    out.best = *best;
    out.behind = behindBy(newest.value, *best, run->earnsRewards);
    const auto plan = sweeps_.find(run->sweep);
    if (plan != sweeps_.end() && plan->second.rule) {
        const StopRule& rule = *plan->second.rule;
        out.ends = newest.step >= rule.from && out.behind > rule.above;
    }
    return out;
}

} // namespace vitrine::engine
