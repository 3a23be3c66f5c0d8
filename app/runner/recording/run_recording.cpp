// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/recording/run_recording.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#include "app/runner/recording/recording_part.h"
#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "engine/workload/experiment/results.h"
#include "profiler/record/recorder.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

/// Parts that fit the limit together.
constexpr std::uint64_t kPartsInLimit = 4;

/// Why the run is not saved where it should be.
std::string missingSentence(const sessions::SessionFile& session, sessions::RunId run) {
    if (const std::string place = session.movedTo(); !place.empty()) {
        return fmt::format("{}: the session file was moved during the run, which is saved as run {} of {}",
                           session.path(), run, place);
    }
    return fmt::format("{}: the session file was {} during the run, so nothing of the run is saved", session.path(),
                       session.place() == sessions::FilePlace::Replaced ? "replaced by another" : "deleted");
}

std::string partName(const std::string& name, std::int64_t part) {
    return part > 1 ? fmt::format("{}, part {}", name, part) : name;
}

} // namespace

struct RunRecording::State {
    std::unique_ptr<sessions::SessionFile> session;
    sessions::RunInfo info;
    std::uint64_t limit = 0;
    std::unique_ptr<PartTrace> trace; ///< null: without parts
    std::shared_ptr<profiler::Recorder> recorder;
    std::atomic<std::uint64_t> lostElsewhere = 0;
    std::atomic<sessions::RunId> run = 0;

    mutable std::mutex mutex; // guards what follows up to the writer's own
    std::condition_variable wake;
    bool stopping = false;
    bool drainNow = false;                            ///< a producer waits
    std::deque<std::shared_ptr<RecordingPart>> parts; ///< the last one gets events, those before it are being written
    std::int64_t firstPart = 1;                       ///< number of the first of `parts`
    std::map<std::int32_t, std::set<std::string>> openTexts; ///< kinds of the present part, by request

    // The writer thread's own; finish() takes them over when it has joined the thread.
    struct Ended {
        sessions::RunId run = 0;
        std::string name;
        std::uint64_t bytes = 0;
    };
    std::deque<Ended> ended; ///< that may be deleted
    std::int64_t droppedParts = 0;
    std::uint64_t droppedBytes = 0;
    std::string lastFailure;
    std::string unsaved;
    std::thread writer;
    bool finished = false;

    profiler::RecorderOptions recorderOptions(base::TimeBase timeBase);
    std::shared_ptr<RecordingPart> present() const;
    std::shared_ptr<RecordingPart> makePart(std::int64_t number, json live);
    void report(const std::exception& error);
    void collectAll(bool last);
    bool write(bool last);
    void writeParts(bool last);
    void endPart(RecordingPart& part, RecordingPart& next);
    void dropOldParts();
    bool drop(const Ended& part);
    void loop();
};

profiler::RecorderOptions RunRecording::State::recorderOptions(base::TimeBase timeBase) {
    profiler::RecorderOptions options;
    if (timeBase == base::TimeBase::Virtual) {
        options.drainSoon = [this] {
            {
                const std::lock_guard lock(mutex);
                drainNow = true;
            }
            wake.notify_all();
        };
    }
    return options;
}

std::shared_ptr<RecordingPart> RunRecording::State::present() const {
    const std::lock_guard lock(mutex);
    return parts.back();
}

std::shared_ptr<RecordingPart> RunRecording::State::makePart(std::int64_t number, json live) {
    sessions::RunInfo own = info;
    own.name = partName(info.name, number);
    auto part = std::make_shared<RecordingPart>(std::move(own), trace != nullptr ? trace->recorder() : recorder);
    for (const auto& [name, value] : live.items()) {
        part->setLiveValue(name, value);
    }
    if (trace != nullptr) {
        part->setLiveValue("part", number);
    }
    return part;
}

void RunRecording::State::report(const std::exception& error) {
    if (lastFailure != error.what()) {
        lastFailure = error.what();
        base::logWarning(fmt::format("the run goes on, but is not saved at the moment: {}", lastFailure));
    }
}

/// Takes what the recorders of all parts have. Producers may wait for it, so it must not depend on the session.
void RunRecording::State::collectAll(bool last) {
    std::deque<std::shared_ptr<RecordingPart>> all;
    {
        const std::lock_guard lock(mutex);
        all = parts;
    }
    for (const auto& part : all) {
        part->collect(last || part != all.back());
    }
}

/// False when the session cannot be written at the moment.
bool RunRecording::State::write(bool last) {
    try {
        collectAll(last);
        writeParts(last);
        lastFailure.clear();
        return true;
    } catch (const std::exception& error) {
        report(error);
        return false;
    }
}

void RunRecording::State::writeParts(bool last) {
    for (;;) {
        std::shared_ptr<RecordingPart> part;
        std::shared_ptr<RecordingPart> next;
        {
            const std::lock_guard lock(mutex);
            part = parts.front();
            next = parts.size() > 1 ? parts[1] : nullptr;
        }
        part->collect(last || next != nullptr);
        part->write(*session, lostElsewhere);
        if (next == nullptr) {
            break;
        }
        endPart(*part, *next);
        {
            const std::lock_guard lock(mutex);
            parts.pop_front();
            ++firstPart;
        }
        dropOldParts();
    }
}

void RunRecording::State::endPart(RecordingPart& part, RecordingPart& next) {
    if (next.info().id == 0) {
        next.open(*session);
    }
    json metrics = part.liveValues();
    metrics[engine::result::kNextRun.key] = next.info().id;
    session->finishRun(part.info().id, sessions::RunStatus::Done,
                       metrics.dump(-1, ' ', false, json::error_handler_t::replace), {});
    ended.push_back({part.info().id, part.info().name, part.bytes()});
    run = next.info().id;
    base::logInfo(fmt::format("the run goes on as run {} of {}", next.info().id, session->path()));
}

/// Deletes the oldest parts until the rest and a whole one more are within the limit.
void RunRecording::State::dropOldParts() {
    std::uint64_t held = 0;
    for (const Ended& part : ended) {
        held += part.bytes;
    }
    const std::uint64_t most = limit - limit / kPartsInLimit;
    const std::int64_t before = droppedParts;
    for (auto oldest = ended.begin(); oldest != ended.end() && held > most;) {
        const bool gone = drop(*oldest);
        held -= oldest->bytes;
        droppedParts += gone ? 1 : 0;
        droppedBytes += gone ? oldest->bytes : 0;
        oldest = ended.erase(oldest); // a renamed, tagged or noted part does not count any more
    }
    if (droppedParts > before) {
        const auto part = present();
        part->setLiveValue("dropped_parts", droppedParts);
        part->setLiveValue("dropped_bytes", droppedBytes);
    }
}

/// False for a part that stays.
bool RunRecording::State::drop(const Ended& part) {
    sessions::RunInfo now;
    try {
        now = session->run(part.run);
    } catch (const base::BadInput&) {
        return false; // the user has deleted it
    }
    if (now.name != part.name || !now.note.empty() || !now.tags.empty() || !session->timelineNotes(part.run).empty() ||
        !session->images(part.run).empty()) {
        base::logInfo(fmt::format("{}: run {} is kept beyond the limit: it has a name, tag, note or picture of yours",
                                  session->path(), part.run));
        return false;
    }
    session->deleteRun(part.run);
    base::logInfo(fmt::format("{}: run {} ({}) was deleted: all parts together may take {}", session->path(), part.run,
                              base::formatBytes(part.bytes), base::formatBytes(limit)));
    return true;
}

void RunRecording::State::loop() {
    std::unique_lock lock(mutex);
    while (!stopping) {
        wake.wait_for(lock, kPeriod, [this] { return stopping || drainNow; });
        drainNow = false;
        lock.unlock();
        write(false);
        lock.lock();
    }
}

RunRecording::RunRecording(std::unique_ptr<sessions::SessionFile> session, const sessions::RunInfo& info,
                           std::uint64_t limit, base::TimeBase timeBase)
    : state_(std::make_unique<State>()) {
    state_->session = std::move(session);
    state_->info = info;
    state_->limit = limit;
    if (limit > 0) {
        state_->trace = std::make_unique<PartTrace>(state_->recorderOptions(timeBase));
    } else {
        state_->recorder = std::make_shared<profiler::Recorder>(state_->recorderOptions(timeBase));
    }
    state_->parts.push_back(state_->makePart(1, json::object()));
    state_->parts.front()->open(*state_->session);
    state_->run = state_->parts.front()->info().id;
    state_->writer = std::thread([state = state_.get()] { state->loop(); });
}

const std::string& RunRecording::unsaved() const {
    return state_->unsaved;
}

RunRecording::~RunRecording() {
    finish(sessions::RunStatus::Failed, "{}", "the run ended without a result");
}

sessions::RunId RunRecording::run() const {
    return state_->run;
}

base::TraceSink& RunRecording::trace() {
    return state_->trace != nullptr ? static_cast<base::TraceSink&>(*state_->trace) : *state_->recorder;
}

void RunRecording::appendText(const std::string& kind, std::string_view more) {
    state_->present()->appendText(kind, more);
}

void RunRecording::setText(const std::string& kind, std::string body) {
    state_->present()->setText(kind, std::move(body));
}

void RunRecording::appendTexts(std::int32_t request,
                               const std::function<std::vector<sessions::RunText>(const PartOrigin& origin)>& make) {
    const PartOrigin origin = state_->trace != nullptr ? state_->trace->origin() : PartOrigin{};
    const std::vector<sessions::RunText> texts = make(origin);
    const std::lock_guard lock(state_->mutex);
    std::set<std::string>& open = state_->openTexts[request];
    for (const sessions::RunText& text : texts) {
        state_->parts.back()->appendText(text.kind, text.body);
        open.insert(text.kind);
    }
}

void RunRecording::closeTexts(std::int32_t request) {
    const std::lock_guard lock(state_->mutex);
    if (const auto texts = state_->openTexts.extract(request); !texts.empty()) {
        for (const std::string& kind : texts.mapped()) {
            state_->parts.back()->closeText(kind);
        }
    }
}

void RunRecording::setLiveValue(std::string_view name, const json& value) {
    state_->present()->setLiveValue(name, value);
}

void RunRecording::addLost(std::uint64_t records) {
    state_->lostElsewhere += records;
}

std::uint64_t RunRecording::lostRecords() const {
    return state_->present()->lostRecords() + state_->lostElsewhere;
}

bool RunRecording::partIsFull() const {
    if (state_->trace == nullptr) {
        return false;
    }
    const auto part = state_->present();
    const std::uint64_t share = state_->limit / kPartsInLimit;
    // However much is alive, a part is worth its beginning.
    return part->bytes() >= share && part->newBytes() >= share / 2;
}

void RunRecording::nextPart(const json& metrics) {
    State& state = *state_;
    // Before the lock: a producer that waits for the writer thread may hold up next(), and the writer needs the lock.
    state.trace->next();
    const std::lock_guard lock(state.mutex);
    const std::int64_t number = state.firstPart + static_cast<std::int64_t>(state.parts.size());
    auto part = state.makePart(number, state.parts.back()->liveValues());
    for (const auto& [name, value] : metrics.items()) {
        state.parts.back()->setLiveValue(name, value);
    }
    state.parts.push_back(std::move(part));
    state.openTexts.clear();
}

std::string RunRecording::finish(sessions::RunStatus status, const std::string& metricsJson, const std::string& error) {
    if (std::exchange(state_->finished, true)) {
        return {};
    }
    State& state = *state_;
    {
        const std::lock_guard lock(state.mutex);
        state.stopping = true;
    }
    state.wake.notify_all();
    state.writer.join();
    std::string missing;
    try {
        if (!state.write(true)) {
            missing = fmt::format("{}; run {} is saved only in part", state.lastFailure, run());
        }
        std::string metrics = metricsJson;
        if (state.trace != nullptr) {
            // The last part has the numbers of the whole run, and says which one it is.
            const json live = state.present()->liveValues();
            json all = json::parse(metricsJson, nullptr, false);
            for (const char* key : {"part", "dropped_parts", "dropped_bytes"}) {
                if (all.is_object() && live.contains(key)) {
                    all[key] = live[key];
                    metrics = all.dump(-1, ' ', false, json::error_handler_t::replace);
                }
            }
        }
        const bool broken = !missing.empty() && status == sessions::RunStatus::Done;
        state.session->finishRun(run(), broken ? sessions::RunStatus::Failed : status, metrics,
                                 broken ? missing : error);
    } catch (const std::exception& failure) {
        missing = fmt::format("{}; the end of run {} is not saved", failure.what(), run());
    }
    // A deleted file takes what is written to it, so writing does not tell.
    if (state.session->place() != sessions::FilePlace::InPlace) {
        state.unsaved = missingSentence(*state.session, run());
    }
    if (!missing.empty() && status != sessions::RunStatus::Done) {
        base::logWarning(missing); // the run has a failure of its own to tell
    }
    return missing;
}

} // namespace vitrine::app
