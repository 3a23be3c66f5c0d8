// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// A queue as a session keeps it.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/sweep/run_queue.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

constexpr int kQueueVersion = 1;

Json priceJson(const QueuePrice& price) {
    return {{"fits", price.fits},
            {"peak", price.peak},
            {"budget", price.budget},
            {"seconds", price.seconds},
            {"nearest", price.nearest},
            {"nearest_spec", price.nearestSpec},
            {"nearest_peak", price.nearestPeak},
            {"nearest_time", price.nearestTime},
            {"error", price.error}};
}

QueuePrice readQueuePrice(const Json& value) {
    QueuePrice out;
    out.fits = value.at("fits").get<bool>();
    out.peak = value.at("peak").get<std::uint64_t>();
    out.budget = value.at("budget").get<std::uint64_t>();
    out.seconds = value.at("seconds").get<double>();
    out.nearest = base::textAt(value, "nearest");
    out.nearestSpec = base::textAt(value, "nearest_spec");
    out.nearestPeak = base::bytesAt(value, "nearest_peak").value_or(0);
    out.nearestTime = base::numberAt(value, "nearest_time").value_or(0);
    out.error = base::textAt(value, "error");
    return out;
}

Json pairsJson(const SweepValues& values) {
    Json out = Json::array();
    for (const auto& [key, value] : values) {
        out.push_back({key, value});
    }
    return out;
}

Json runJson(const QueuedRun& run) {
    Json evaluations = Json::array();
    for (const QueueEvaluation& one : run.evaluations) {
        evaluations.push_back({one.step, one.value});
    }
    Json out = {{"number", run.number},
                {"name", run.name},
                {"sweep", run.sweep},
                {"values", pairsJson(run.values)},
                {"spec", base::parsedObject(run.spec)},
                {"state", queueStateWords(run.state)},
                {"interrupted", run.interrupted},
                {"lost", run.lost},
                {"reason", run.reason},
                {"run", run.run},
                {"step", run.step},
                {"steps", run.steps},
                {"peak", run.peak},
                {"started_ms", run.startedMs},
                {"ended_ms", run.endedMs},
                {"tokens_per_second", run.tokensPerSecond},
                {"evaluations", std::move(evaluations)}};
    if (run.price) {
        out["price"] = priceJson(*run.price);
    }
    if (run.value) {
        out["loss"] = *run.value;
    }
    return out;
}

QueueState stateNamed(std::string_view words) {
    for (int i = 0; i < kQueueStates; ++i) {
        if (queueStateWords(static_cast<QueueState>(i)) == words) {
            return static_cast<QueueState>(i);
        }
    }
    return QueueState::Paused;
}

QueuedRun readQueuedRun(const Json& value) {
    QueuedRun out;
    out.number = value.at("number").get<std::int64_t>();
    out.name = base::textAt(value, "name");
    out.sweep = base::textAt(value, "sweep");
    for (const Json& pair : value.at("values")) {
        out.values.emplace_back(pair.at(0).get<std::string>(), pair.at(1).get<std::string>());
    }
    out.spec = base::compactText(value.at("spec"));
    out.state = stateNamed(base::textAt(value, "state"));
    out.interrupted = value.value("interrupted", false);
    out.lost = value.value("lost", false);
    out.reason = base::textAt(value, "reason");
    out.run = value.value("run", std::int64_t{0});
    out.step = value.value("step", std::int64_t{0});
    out.steps = value.value("steps", std::int64_t{0});
    out.peak = value.value("peak", std::uint64_t{0});
    out.startedMs = value.value("started_ms", std::int64_t{0});
    out.endedMs = value.value("ended_ms", std::int64_t{0});
    out.tokensPerSecond = value.value("tokens_per_second", 0.0);
    for (const Json& pair : value.at("evaluations")) {
        out.evaluations.push_back({pair.at(0).get<std::int64_t>(), pair.at(1).get<double>()});
    }
    if (value.contains("price")) {
        out.price = readQueuePrice(value["price"]);
    }
    out.earnsRewards = earnsRewards(value.at("spec"));
    out.value = base::numberAt(value, "loss");
    return out;
}

} // namespace

Json RunQueue::toJson() const {
    Json runs = Json::array(), sweeps = Json::array();
    for (const QueuedRun& run : runs_) {
        runs.push_back(runJson(run));
    }
    for (const auto& [name, plan] : sweeps_) {
        sweeps.push_back(sweepPlanJson(plan));
    }
    return {{"queue", kQueueVersion}, {"last", last_},         {"go_on", goOn_},   {"paused", paused_},
            {"reason", pauseReason_}, {"failures", failures_}, {"sweeps", sweeps}, {"runs", runs}};
}

std::optional<RunQueue> RunQueue::read(std::string_view json) {
    const Json value = base::parsedObject(json);
    if (value.value("queue", Json()) != kQueueVersion) {
        return std::nullopt;
    }
    try {
        RunQueue out;
        out.last_ = value.at("last").get<std::int64_t>();
        out.goOn_ = value.at("go_on").get<bool>();
        out.paused_ = value.at("paused").get<bool>();
        out.pauseReason_ = base::textAt(value, "reason");
        out.failures_ = value.at("failures").get<int>();
        for (const Json& plan : value.at("sweeps")) {
            if (auto read = readSweepPlan(plan)) {
                const std::string name = read->name;
                out.sweeps_.emplace(name, std::move(*read));
            }
        }
        for (const Json& run : value.at("runs")) {
            out.runs_.push_back(readQueuedRun(run));
            out.last_ = std::max(out.last_, out.runs_.back().number);
        }
        return out;
    } catch (const Json::exception&) {
        return std::nullopt;
    }
}

} // namespace vitrine::engine
