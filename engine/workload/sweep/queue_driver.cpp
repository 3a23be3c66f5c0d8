// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/sweep/queue_driver.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json_values.h"
#include "engine/checkpoint/folder_lock.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/sweep/queue_progress.h"

namespace vitrine::engine {

namespace {

/// The worker of a program that was killed may still save where it is. What it does not end in this time is its own.
void waitForFolder(const std::string& folder) {
    constexpr std::chrono::milliseconds kStep{50}, kLongest{30000};
    for (std::chrono::milliseconds waited{0}; !folder.empty() && waited < kLongest && !isFolderFree(folder);
         waited += kStep) {
        std::this_thread::sleep_for(kStep);
    }
}

/// Whether it failed because its process or its device did, not by what it was asked.
bool isLoss(const QueueEnd& end) {
    if (end.how != QueueEnd::How::Failed) {
        return false;
    }
    const nlohmann::json metrics = base::parsedObject(end.metricsJson);
    const auto error = metrics.find("error");
    return error != metrics.end() && error->is_object() &&
           base::textAt(*error, "kind") == base::errorKindName(base::ErrorKind::DeviceFault);
}

nlohmann::json canonical(const std::string& spec) {
    const auto experiment = Experiment::read(spec);
    return experiment ? experiment->toJson() : base::parsedObject(spec);
}

} // namespace

bool isSameExperiment(const std::string& one, const std::string& other) {
    return canonical(one) == canonical(other);
}

void QueueDriver::load(RunQueue queue) {
    queue_ = std::move(queue);
    own_ = lost_ = 0;
    broughtBack_.clear();
    begun_.clear();
}

std::optional<std::int64_t> QueueDriver::next(std::string_view sweep) const {
    if (own_ != 0 || lost_ != 0) {
        return std::nullopt;
    }
    if (sweep.empty()) {
        return queue_.next();
    }
    if (queue_.paused() || queue_.running() != nullptr) {
        return std::nullopt;
    }
    const std::vector<const QueuedRun*> runs = queue_.runsOf(sweep);
    const auto waiting =
        std::ranges::find_if(runs, [](const QueuedRun* run) { return run->state == QueueState::Waiting; });
    return waiting == runs.end() ? std::nullopt : std::optional((*waiting)->number);
}

const QueuedRun* QueueDriver::current() const {
    return own_ != 0 ? queue_.find(own_) : nullptr;
}

bool QueueDriver::start(std::int64_t number) {
    if (own_ != 0 || !queue_.start(number, base::wallClockMs())) {
        return false;
    }
    own_ = number;
    endedByRule_ = endedByUser_ = worked_ = false;
    keep();
    host_.start(*std::as_const(queue_).find(number));
    return true;
}

void QueueDriver::started(std::int64_t run) {
    if (current() != nullptr) {
        queue_.find(own_)->run = run;
        keep();
    }
}

bool QueueDriver::progress(std::string_view what, std::uint64_t done, std::uint64_t total) {
    if (current() == nullptr) {
        return false;
    }
    worked_ = true;
    takeProgress(*queue_.find(own_), what, done, total);
    return true;
}

bool QueueDriver::metric(std::string_view name, double value) {
    if (current() == nullptr) {
        return false;
    }
    worked_ = true;
    QueuedRun& run = *queue_.find(own_);
    if (!takeMetric(run, name, value)) {
        return false;
    }
    const auto verdict = queue_.verdict(own_);
    if (verdict && verdict->ends && !endedByRule_) {
        endedByRule_ = true;
        run.reason = fmt::format("{:.3f} {} #{} at step {}", verdict->behind, run.earnsRewards ? "below" : "above",
                                 verdict->bestNumber, verdict->step);
        host_.stop();
    }
    return true;
}

QueueDriver::After QueueDriver::ended(const QueueEnd& end) {
    if (current() == nullptr) {
        return After::Ended;
    }
    const std::int64_t number = std::exchange(own_, 0);
    QueuedRun& run = *queue_.find(number);
    run.run = end.run > 0 ? end.run : run.run;
    takeResults(run, end.metricsJson);
    const bool loss = isLoss(end);
    const bool again = loss && !endedByRule_ && !endedByUser_ && broughtBack_.insert(number).second;
    if (again) {
        queue_.interrupt(number);
        lost_ = number;
        if (worked_) {
            begun_.insert(number);
        }
    } else {
        QueueState state = QueueState::Failed;
        std::string reason = end.error;
        if (end.how == QueueEnd::How::Done) {
            state = QueueState::Finished; // also where the rule came with its last evaluation
        } else if (end.how == QueueEnd::How::Cancelled) {
            state = endedByRule_ ? QueueState::EndedByRule : QueueState::EndedByUser;
            reason = endedByRule_ ? run.reason : reason;
        }
        run.lost = loss;
        queue_.end(number, state, reason, base::wallClockMs());
    }
    if (run.run > 0) {
        host_.mark(run);
    }
    keep();
    return again ? After::Lost : After::Ended;
}

void QueueDriver::endByUser() {
    if (current() != nullptr) {
        endedByUser_ = true;
        host_.stop();
    }
}

GoingOn QueueDriver::findGoingOn(const std::string& spec) {
    if (const auto experiment = Experiment::read(spec)) {
        waitForFolder(experiment->text("output"));
    }
    GoingOn out;
    out.overItself = overItself(spec);
    try {
        out.fromCheckpoint = fromLastCheckpoint(spec);
    } catch (const std::exception&) {
        out.fromCheckpoint.reset(); // a folder that cannot be read: the run itself says so when its turn comes
    }
    return out;
}

/// A run that has no record in the session and has reported no work never began, and what is in its folder is not its
/// own.
std::string QueueDriver::goOn(std::int64_t number, const GoingOn& where) {
    lost_ = lost_ == number ? 0 : lost_;
    const QueuedRun* run = std::as_const(queue_).find(number);
    if (run == nullptr || run->state != QueueState::Paused) {
        return {};
    }
    const bool began = run->run > 0 || begun_.contains(number) || host_.isRecorded(run->spec);
    const std::optional<QueuePrice> price = run->price; // it holds what it held
    engine::goOn(queue_, number, where.fromCheckpoint);
    if (!where.fromCheckpoint && where.overItself && began) {
        queue_.edit(number, *where.overItself);
        if (price) {
            queue_.setPrice(number, *price);
        }
    }
    keep();
    return where.fromCheckpoint ? "goes on from its last checkpoint" : "has written no checkpoint and begins again";
}

} // namespace vitrine::engine
