// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/run_recording.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "profiler/recorder.h"

namespace vitrine::app {

namespace {

/// Chunks that wait for a session that cannot be written, at most.
constexpr std::size_t kMaxWaitingBytes = std::size_t{256} << 20;

std::size_t sizeOf(const base::ColumnChunk& chunk) {
    std::size_t bytes = 0;
    for (const base::Column& column : chunk.columns) {
        bytes += column.data.size();
    }
    return bytes;
}

} // namespace

struct RunRecording::State {
    std::unique_ptr<sessions::SessionFile> session;
    sessions::RunId run = 0;
    profiler::Recorder recorder;

    std::mutex mutex; // guards what follows up to the writer's own part
    std::condition_variable wake;
    bool stopping = false;
    std::map<std::string, std::string> texts;
    std::set<std::string> changedTexts; // kinds
    std::set<std::string> closedTexts;  // kinds that are not written for good
    nlohmann::json liveValues = nlohmann::json::object();
    bool liveValuesChanged = false;
    std::atomic<std::uint64_t> lostElsewhere = 0;

    // The writer thread's own; finish() takes them over when it has joined the thread.
    std::vector<base::ColumnChunk> waiting;
    std::size_t waitingBytes = 0;
    std::uint64_t droppedRows = 0;
    std::uint64_t writtenLost = 0;
    bool full = false;
    std::string lastFailure;
    std::thread writer;
    bool finished = false;

    void collect(std::vector<base::ColumnChunk> chunks);
    void report(const std::exception& error);
    bool write();
    void loop();
};

void RunRecording::State::collect(std::vector<base::ColumnChunk> chunks) {
    for (base::ColumnChunk& chunk : chunks) {
        // After the first chunk that is dropped all later ones are too: what is kept stays a whole beginning.
        full = full || waitingBytes > kMaxWaitingBytes;
        if (full) {
            droppedRows += chunk.rows;
            continue;
        }
        waitingBytes += sizeOf(chunk);
        waiting.push_back(std::move(chunk));
    }
}

void RunRecording::State::report(const std::exception& error) {
    if (lastFailure != error.what()) {
        lastFailure = error.what();
        base::logWarning(fmt::format("the run goes on, but is not saved at the moment: {}", lastFailure));
    }
}

bool RunRecording::State::write() {
    std::vector<sessions::RunText> changed;
    std::vector<std::string> closed;
    std::string live;
    {
        const std::lock_guard lock(mutex);
        for (const std::string& kind : changedTexts) {
            changed.push_back({kind, texts[kind]});
        }
        changedTexts.clear();
        closed.assign(closedTexts.begin(), closedTexts.end());
        if (std::exchange(liveValuesChanged, false)) {
            live = liveValues.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        }
    }
    try {
        session->appendChunks(run, waiting);
        waiting.clear();
        waitingBytes = 0;
        for (const sessions::RunText& text : changed) {
            session->putText(run, text);
        }
        if (!live.empty()) {
            session->setMetrics(run, live);
        }
        const std::uint64_t lost = recorder.lostRecords() + droppedRows + lostElsewhere;
        if (lost != writtenLost) {
            session->setLostRecords(run, lost);
            writtenLost = lost;
        }
        lastFailure.clear();
        const std::lock_guard lock(mutex);
        for (const std::string& kind : closed) {
            texts.erase(kind);
            closedTexts.erase(kind);
        }
        return true;
    } catch (const std::exception& error) {
        report(error);
        const std::lock_guard lock(mutex);
        liveValuesChanged = liveValuesChanged || !live.empty();
        for (const sessions::RunText& text : changed) {
            changedTexts.insert(text.kind);
        }
        return false;
    }
}

void RunRecording::State::loop() {
    std::unique_lock lock(mutex);
    while (!stopping) {
        wake.wait_for(lock, kPeriod, [this] { return stopping; });
        lock.unlock();
        try {
            collect(recorder.drain());
            write();
        } catch (const std::exception& error) {
            report(error);
        }
        lock.lock();
    }
}

RunRecording::RunRecording(std::unique_ptr<sessions::SessionFile> session, const sessions::RunInfo& info)
    : state_(std::make_unique<State>()) {
    state_->session = std::move(session);
    state_->run = state_->session->createRun(info);
    state_->writer = std::thread([state = state_.get()] { state->loop(); });
}

RunRecording::~RunRecording() {
    finish(sessions::RunStatus::Failed, "{}", "the run ended without a result");
}

sessions::RunId RunRecording::run() const {
    return state_->run;
}

base::TraceSink& RunRecording::trace() {
    return state_->recorder;
}

void RunRecording::appendText(const std::string& kind, std::string_view more) {
    const std::lock_guard lock(state_->mutex);
    state_->texts[kind] += more;
    state_->changedTexts.insert(kind);
}

void RunRecording::setText(const std::string& kind, std::string body) {
    const std::lock_guard lock(state_->mutex);
    state_->texts[kind] = std::move(body);
    state_->changedTexts.insert(kind);
}

void RunRecording::closeText(const std::string& kind) {
    const std::lock_guard lock(state_->mutex);
    state_->closedTexts.insert(kind);
}

void RunRecording::setLiveValue(std::string_view name, const nlohmann::json& value) {
    const std::lock_guard lock(state_->mutex);
    state_->liveValues[std::string(name)] = value;
    state_->liveValuesChanged = true;
}

void RunRecording::addLost(std::uint64_t records) {
    state_->lostElsewhere += records;
}

void RunRecording::finish(sessions::RunStatus status, const std::string& metricsJson, const std::string& error) {
    if (std::exchange(state_->finished, true)) {
        return;
    }
    {
        const std::lock_guard lock(state_->mutex);
        state_->stopping = true;
    }
    state_->wake.notify_all();
    state_->writer.join();
    try {
        state_->collect(state_->recorder.finish());
        if (!state_->write()) {
            base::logWarning(fmt::format("{}: run {} is incomplete", state_->session->path(), state_->run));
        }
        state_->session->finishRun(state_->run, status, metricsJson, error);
    } catch (const std::exception& failure) {
        base::logWarning(
            fmt::format("{}: run {} could not be finished: {}", state_->session->path(), state_->run, failure.what()));
    }
}

} // namespace vitrine::app
