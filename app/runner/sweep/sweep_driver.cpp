// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/sweep/sweep_driver.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "app/runner/host/outcome.h"
#include "app/runner/machine/environment.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/sweep/queue_progress.h"

namespace vitrine::app {

namespace {

using engine::QueuedRun;
using engine::QueueState;
using nlohmann::json;

engine::Experiment experimentOf(const QueuedRun& run) {
    return engine::Experiment::parse(base::parsedObject(run.spec), fmt::format("#{} ({})", run.number, run.name));
}

engine::Experiment planOfThisMachine(const engine::Experiment& experiment) {
    engine::Experiment plan = experiment.asPlan();
    plan.set("backend", std::string(chosenBackend(experiment)));
    return plan;
}

/// The worker of a program that was killed may still save where it is. What it does not end in this time is its own.
void waitForFolder(const std::string& folder) {
    constexpr std::chrono::milliseconds kStep{50}, kLongest{30000};
    for (std::chrono::milliseconds waited{0}; !folder.empty() && waited < kLongest && !engine::isFolderFree(folder);
         waited += kStep) {
        std::this_thread::sleep_for(kStep);
    }
}

void call(const std::function<void(const QueuedRun&)>& what, const QueuedRun& run) {
    if (what) {
        what(run);
    }
}

} // namespace

SweepDriver::SweepDriver(RunHost& host, const std::string& sessionFile, SweepListener listener)
    : host_(host), file_(sessionFile), listener_(std::move(listener)) {
    if (file_.empty()) {
        return;
    }
    session_ = sessions::SessionFile::open(file_, sessions::OpenMode::CreateOrOpen);
    if (const auto text = session_->sessionText(kQueueText)) {
        auto kept = engine::RunQueue::read(*text);
        if (!kept) {
            throw base::BadInput(fmt::format(
                "{}: its queue was written by another version of this program; use another session", file_));
        }
        queue_ = std::move(*kept);
    }
    for (const sessions::RunInfo& run : session_->runs()) {
        queue_.numberAbove(run.id);
    }
}

std::string SweepDriver::add(engine::SweepPlan plan) {
    lock(plan);
    const std::string name = queue_.addSweep(std::move(plan));
    keep();
    return name;
}

void SweepDriver::resume(const engine::SweepPlan& plan) {
    const std::string& name = plan.name;
    const auto found = queue_.sweeps().find(name);
    if (found == queue_.sweeps().end()) {
        throw base::BadInput(
            fmt::format("--resume: {} has no sweep \"{}\"; leave --resume out to begin it", file_, name));
    }
    if (found->second.options != plan.options) {
        throw base::BadInput(fmt::format("--resume: the sweep \"{}\" of {} varies other values; give those that it "
                                         "began with, or another --name",
                                         name, file_));
    }
    lock(plan);
    queue_.recover();
    std::vector<std::int64_t> numbers;
    for (const QueuedRun* run : queue_.runsOf(name)) {
        numbers.push_back(run->number);
    }
    for (const std::int64_t number : numbers) {
        queue_.bringBack(number);
        if (queue_.find(number)->state == QueueState::Paused) {
            takeUp(number);
        }
    }
    keep();
}

/// From its last checkpoint, or from its beginning over what it left. Without a record in the session it never began,
/// and what is in its folder is not its own.
void SweepDriver::takeUp(std::int64_t number) {
    const std::string spec = queue_.find(number)->spec;
    waitForFolder(experimentOf(*queue_.find(number)).text("output"));
    const auto from = engine::fromLastCheckpoint(spec);
    engine::goOn(queue_, number, from);
    const std::vector<sessions::RunInfo> runs = session_->runs();
    const bool began = std::ranges::any_of(runs, [wanted = base::parsedObject(spec)](const sessions::RunInfo& run) {
        return base::parsedObject(run.specJson) == wanted;
    });
    if (const auto anew = engine::overItself(spec); anew && !from && began) {
        queue_.edit(number, *anew);
    }
}

/// Folders of its runs lie below the one that the experiment names, which no other sweep or run may have meanwhile.
void SweepDriver::lock(const engine::SweepPlan& plan) {
    engine::Experiment below = engine::Experiment::parse(base::parsedObject(plan.base), plan.name);
    for (const engine::SweepOption& option : plan.options) {
        below.unset(option.key); // runs that vary it have folders of their own
    }
    if (!plan.options.empty()) {
        locks_ = engine::lockOutputs(below);
    }
}

std::optional<std::int64_t> SweepDriver::nextOf(const std::string& sweep) const {
    const std::vector<const QueuedRun*> runs = queue_.runsOf(sweep);
    const auto waiting =
        std::ranges::find_if(runs, [](const QueuedRun* run) { return run->state == QueueState::Waiting; });
    return waiting == runs.end() || queue_.paused() ? std::nullopt : std::optional((*waiting)->number);
}

void SweepDriver::price(const std::string& sweep) {
    engine::PlanPricer pricer;
    std::vector<std::int64_t> numbers;
    for (const QueuedRun* run : queue_.runsOf(sweep)) {
        if (!hasEnded(run->state)) {
            numbers.push_back(run->number);
        }
    }
    for (const std::int64_t number : numbers) {
        engine::QueuePrice price;
        try {
            const engine::Experiment experiment = experimentOf(*queue_.find(number));
            price = engine::priceQueued(experiment, planOfThisMachine(experiment), pricer, pricing_.get_token());
        } catch (const base::Cancelled&) {
            return;
        } catch (const base::Error& error) {
            price.error = error.message(); // the run itself says what is wrong
        }
        queue_.setPrice(number, price);
        call(listener_.priced, *queue_.find(number));
    }
    keep();
}

void SweepDriver::run(const std::string& sweep) {
    queue_.resume();
    price(sweep);
    while (!stopping_) {
        const auto number = nextOf(sweep);
        if (!number) {
            break;
        }
        runOne(*number);
    }
}

void SweepDriver::runOne(std::int64_t number) {
    queue_.start(number, base::wallClockMs());
    endedByRule_ = false;
    keep();
    call(listener_.started, *queue_.find(number));
    RunOutcome outcome;
    try {
        host_.start(experimentOf(*queue_.find(number)), file_,
                    [this, number](const json& message) { take(number, message); });
        outcome = host_.wait();
    } catch (const base::Error&) {
        outcome = outcomeOf(std::current_exception());
    }
    finish(number, outcome);
}

void SweepDriver::take(std::int64_t number, const json& message) {
    const std::string type = message.value("type", "");
    const std::lock_guard lock(mutex_);
    QueuedRun& run = *queue_.find(number);
    if (type == "progress") {
        const std::string what = message.value("what", "");
        const auto done = message.value("done", std::uint64_t{0}), total = message.value("total", std::uint64_t{0});
        takeProgress(run, what, done, total);
        if (listener_.progress) {
            listener_.progress(what, done, total);
        }
    } else if (type == "started") {
        run.run = message.value("run", std::int64_t{0});
    } else if (type == "metric" && message["value"].is_number() &&
               takeMetric(run, message.value("name", ""), message["value"].get<double>())) {
        call(listener_.evaluated, run);
        const auto verdict = queue_.verdict(number);
        if (verdict && verdict->ends && !endedByRule_) {
            endedByRule_ = true;
            run.reason = fmt::format("{:.3f} above #{} at step {}", verdict->above, verdict->bestNumber, verdict->step);
            host_.stop();
        }
    }
}

void SweepDriver::finish(std::int64_t number, const RunOutcome& outcome) {
    const std::lock_guard lock(mutex_);
    QueuedRun& run = *queue_.find(number);
    run.run = outcome.run > 0 ? outcome.run : run.run;
    takeResults(run, outcome.metricsJson);
    metrics_[number] = outcome.metricsJson;
    QueueState state = QueueState::Failed;
    std::string reason = oneLine(outcome.error);
    if (outcome.status == RunOutcome::Status::Done) {
        state = QueueState::Finished; // also where the rule came with its last evaluation
    } else if (outcome.status == RunOutcome::Status::Cancelled) {
        state = endedByRule_ ? QueueState::EndedByRule : QueueState::EndedByUser;
        reason = endedByRule_ ? run.reason : reason;
    }
    run.lost = state == QueueState::Failed && outcome.errorKind == base::ErrorKind::DeviceFault;
    queue_.end(number, state, reason, base::wallClockMs());
    if (session_ != nullptr && run.run > 0) {
        session_->setSweep(run.run, run.sweep);
        session_->renameRun(run.run, run.name);
    }
    keep();
    call(listener_.ended, run);
}

void SweepDriver::stopAfterRun() {
    stopping_ = true;
    pricing_.request_stop();
}

void SweepDriver::keep() {
    if (session_ != nullptr) {
        session_->putSessionText(kQueueText, base::compactText(queue_.toJson()));
    }
}

const std::string& SweepDriver::metrics(std::int64_t number) const {
    static const std::string kNone;
    const auto found = metrics_.find(number);
    return found == metrics_.end() ? kNone : found->second;
}

} // namespace vitrine::app
