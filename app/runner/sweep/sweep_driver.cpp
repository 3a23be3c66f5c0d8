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
        driver_.load(std::move(*kept));
    }
    for (const sessions::RunInfo& run : session_->runs()) {
        edited().numberAbove(run.id);
    }
}

/// A run that a program left behind as running would let no other one begin.
void SweepDriver::recoverOthers() {
    const QueuedRun* running = queue().running();
    if (running == nullptr) {
        return;
    }
    const std::vector<sessions::RunInfo> runs = session_->runs();
    const auto own = std::ranges::find(runs, running->run, &sessions::RunInfo::id);
    if (own != runs.end() && own->status == sessions::RunStatus::Running) {
        throw base::BadInput(fmt::format("{}: another program runs #{} of its queue now; wait for its end, or use "
                                         "another session",
                                         file_, running->number));
    }
    edited().recover();
}

std::string SweepDriver::add(engine::SweepPlan plan) {
    recoverOthers();
    lock(plan);
    const std::string name = edited().addSweep(std::move(plan));
    driver_.keep();
    return name;
}

void SweepDriver::resume(const engine::SweepPlan& plan) {
    const std::string& name = plan.name;
    const auto found = queue().sweeps().find(name);
    if (found == queue().sweeps().end()) {
        throw base::BadInput(
            fmt::format("--resume: {} has no sweep \"{}\"; leave --resume out to begin it", file_, name));
    }
    if (found->second.options != plan.options) {
        throw base::BadInput(fmt::format("--resume: the sweep \"{}\" of {} varies other values; give those that it "
                                         "began with, or another --name",
                                         name, file_));
    }
    lock(plan);
    edited().recover();
    std::vector<std::int64_t> numbers;
    for (const QueuedRun* run : queue().runsOf(name)) {
        numbers.push_back(run->number);
    }
    for (const std::int64_t number : numbers) {
        edited().bringBack(number);
        const QueuedRun& run = *queue().find(number);
        if (run.state == QueueState::Paused) {
            driver_.goOn(number, engine::QueueDriver::findGoingOn(run.spec));
        }
    }
    driver_.keep();
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

void SweepDriver::price(const std::string& sweep) {
    engine::PlanPricer pricer;
    std::vector<std::int64_t> numbers;
    for (const QueuedRun* run : queue().runsOf(sweep)) {
        if (!hasEnded(run->state)) {
            numbers.push_back(run->number);
        }
    }
    for (const std::int64_t number : numbers) {
        engine::QueuePrice price;
        try {
            const engine::Experiment experiment = experimentOf(*queue().find(number));
            price = engine::priceQueued(experiment, planOfThisMachine(experiment), pricer, pricing_.get_token());
        } catch (const base::Cancelled&) {
            return;
        } catch (const base::Error& error) {
            price.error = error.message(); // the run itself says what is wrong
        }
        edited().setPrice(number, price);
        call(listener_.priced, *queue().find(number));
    }
    driver_.keep();
}

void SweepDriver::run(const std::string& sweep) {
    edited().resume();
    price(sweep);
    while (!stopping_) {
        const auto number = driver_.next(sweep);
        if (!number) {
            break;
        }
        refused_.reset();
        call(listener_.started, *queue().find(*number));
        driver_.start(*number);
        finish(*number, refused_ ? *refused_ : host_.wait());
    }
}

void SweepDriver::start(const QueuedRun& run) {
    try {
        host_.start(experimentOf(run), file_, [this](const json& message) { take(message); });
    } catch (const base::Error&) {
        refused_ = outcomeOf(std::current_exception());
    }
}

void SweepDriver::take(const json& message) {
    const std::string type = base::textAt(message, "type");
    const std::lock_guard lock(mutex_);
    if (type == "progress") {
        const std::string what = base::textAt(message, "what");
        const std::uint64_t done = base::bytesAt(message, "done").value_or(0);
        const std::uint64_t total = base::bytesAt(message, "total").value_or(0);
        if (driver_.progress(what, done, total) && listener_.progress) {
            listener_.progress(what, done, total);
        }
    } else if (type == "started") {
        driver_.started(base::integerAt(message, "run").value_or(0));
    } else if (type == "metric") {
        if (const auto value = base::numberAt(message, "value")) {
            driver_.metric(base::textAt(message, "name"), *value);
        }
    }
}

void SweepDriver::finish(std::int64_t number, const RunOutcome& outcome) {
    using How = engine::QueueEnd::How;
    std::unique_lock lock(mutex_);
    metrics_[number] = outcome.metricsJson;
    const How how = outcome.status == RunOutcome::Status::Done        ? How::Done
                    : outcome.status == RunOutcome::Status::Cancelled ? How::Cancelled
                                                                      : How::Failed;
    const auto after = driver_.ended({how, outcome.run, oneLine(outcome.error), outcome.metricsJson});
    if (after == engine::QueueDriver::After::Ended) {
        call(listener_.ended, *queue().find(number));
        return;
    }
    const std::string spec = queue().find(number)->spec;
    lock.unlock();
    const engine::GoingOn where = engine::QueueDriver::findGoingOn(spec);
    lock.lock();
    const std::string what = driver_.goOn(number, where);
    if (listener_.broughtBack) {
        listener_.broughtBack(*queue().find(number), what);
    }
}

void SweepDriver::stopAfterRun() {
    stopping_ = true;
    pricing_.request_stop();
}

bool SweepDriver::isRecorded(const std::string& spec) const {
    const std::vector<sessions::RunInfo> runs =
        session_ != nullptr ? session_->runs() : std::vector<sessions::RunInfo>();
    return std::ranges::any_of(
        runs, [&](const sessions::RunInfo& run) { return engine::isSameExperiment(run.specJson, spec); });
}

void SweepDriver::keep(const engine::RunQueue& queue) {
    if (session_ != nullptr) {
        session_->putSessionText(kQueueText, base::compactText(queue.toJson()));
    }
}

void SweepDriver::mark(const QueuedRun& run) {
    if (session_ != nullptr) {
        session_->setSweep(run.run, run.sweep);
        session_->renameRun(run.run, run.name);
    }
}

const std::string& SweepDriver::metrics(std::int64_t number) const {
    static const std::string kNone;
    const auto found = metrics_.find(number);
    return found == metrics_.end() ? kNone : found->second;
}

} // namespace vitrine::app
