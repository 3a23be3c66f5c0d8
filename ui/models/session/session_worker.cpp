// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/session/session_worker.h"

#include <QFileInfo>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "profiler/timeline/run_timeline_builder.h"

namespace vitrine::ui {

using sessions::RunId;
using sessions::RunInfo;
using sessions::RunStatus;
using sessions::SessionFile;

namespace {

constexpr std::chrono::milliseconds kLivePoll{34};  // at most 30 times a second
constexpr std::chrono::milliseconds kIdlePoll{500}; // other processes may append to the file
constexpr std::chrono::milliseconds kPublishEvery{100};
constexpr std::chrono::milliseconds kKeepingEvery{400};
constexpr std::size_t kChunksAtOnce = 16;
constexpr const char* kMovedModelsText = "moved_models"; // of the session

} // namespace

QString SessionDocument::Worker::sentenceOf(const std::exception& error) {
    return QString::fromUtf8(error.what());
}

void SessionDocument::Worker::run() noexcept {
    try {
        file_ = opener_(path_);
        readMovedModels();
        publishRuns(true);
    } catch (const std::exception& error) {
        file_.reset();
        toGui([text = sentenceOf(error), path = QString::fromStdString(path_)](SessionDocument& d) {
            d.dropOpening();
            emit d.openFailed(path, text);
        });
        return;
    }
    while (step()) {
    }
    file_.reset();
}

bool SessionDocument::Worker::step() noexcept {
    std::function<void(SessionFile&)> job;
    {
        std::unique_lock lock(mutex_);
        if (ending_) {
            return false;
        }
        if (!jobs_.empty()) {
            job = std::move(jobs_.front());
            jobs_.pop_front();
        }
    }
    try {
        if (std::chrono::steady_clock::now() - keepingChecked_ > kKeepingEvery) {
            checkKeeping();
        }
        if (job) {
            job(*file_);
            return true;
        }
        if (readingAllowed_ && readSome()) {
            return true;
        }
        waitForWork();
        poll();
    } catch (const std::exception& error) {
        toGui([text = sentenceOf(error)](SessionDocument& d) { emit d.editFailed(text); });
        // A broken disk must not make this thread spin.
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, kIdlePoll, [this] { return ending_; });
    }
    return true;
}

void SessionDocument::Worker::edit(const std::function<void(SessionFile&)>& job) {
    try {
        job(*file_);
    } catch (const std::exception& error) {
        if (file_->editsInMemory()) {
            throw;
        }
        file_->keepEditsInMemory();
        try {
            job(*file_);
        } catch (...) {
            // It was not the file's fault, or this is nothing that memory keeps.
            file_->dropEdits();
            throw;
        }
        whyWaiting_ = sentenceOf(error);
    }
}

void SessionDocument::Worker::checkKeeping() {
    keepingChecked_ = std::chrono::steady_clock::now();
    const sessions::FilePlace place = file_->place();
    if (place == sessions::FilePlace::InPlace && file_->editsInMemory() && file_->writable()) {
        try {
            file_->writeEdits();
        } catch (const std::exception& error) {
            whyWaiting_ = sentenceOf(error);
        }
    }
    using State = SessionKeeping::State;
    SessionKeeping now;
    now.state = place == sessions::FilePlace::Gone       ? State::Deleted
                : place == sessions::FilePlace::Replaced ? State::Replaced
                : file_->editsInMemory()                 ? State::Waiting
                                                         : State::Saved;
    now.reason = now.state == State::Waiting ? whyWaiting_ : QString();
    if (now == keeping_) {
        return;
    }
    keeping_ = now;
    toGui([now](SessionDocument& d) {
        d.keeping_ = now;
        emit d.keepingChanged();
    });
}

void SessionDocument::Worker::waitForWork() {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, live_ ? kLivePoll : kIdlePoll, [this] { return ending_ || !jobs_.empty(); });
}

void SessionDocument::Worker::poll() {
    const std::uint64_t now = file_->changeCounter();
    if (now == seen_) {
        return;
    }
    publishRuns(false);
    for (auto& [id, reader] : readers_) {
        reader.caughtUp = false;
    }
}

void SessionDocument::Worker::publishRuns(bool first) {
    seen_ = file_->changeCounter();
    std::vector<RunInfo> runs = file_->runs();
    live_ = std::any_of(runs.begin(), runs.end(), [](const RunInfo& r) { return r.status == RunStatus::Running; });
    missing_.clear();
    for (RunInfo& run : runs) {
        findFiles(run);
    }
    QStringList damaged; // runs that the list does not have, told once
    for (const auto& [run, sentence] : file_->damagedRuns()) {
        if (toldDamage_.insert(run).second) {
            damaged += QString::fromStdString(sentence);
        }
    }
    toGui([list = std::move(runs), missing = missing_, damaged, first](SessionDocument& d) mutable {
        if (first) {
            d.takeOpening();
            d.open_ = true;
            d.runs_.clear();
            d.timelines_.clear();
        }
        d.missingModels_ = std::move(missing);
        d.takeRuns(std::move(list));
        if (first) {
            emit d.opened();
        }
        for (const QString& sentence : damaged) {
            emit d.runDamaged(sentence);
        }
    });
}

void SessionDocument::Worker::findFiles(RunInfo& run) {
    const auto [place, fresh] = found_.try_emplace(run.id);
    FoundFiles& found = place->second;
    if (fresh || found.experiment != run.specJson || found.environment != run.environmentJson) {
        const std::string folder = base::textIn(run.environmentJson, "working_directory");
        const std::string beside = QFileInfo(QString::fromStdString(path_)).absolutePath().toStdString();
        found = {run.specJson, run.environmentJson, engine::findStoredFiles(run.specJson, {folder, beside, moved_})};
    }
    const engine::StoredFiles& files = found.files;
    if (files.experiment != run.specJson) {
        run.storedSpecJson = std::exchange(run.specJson, files.experiment);
    }
    if (!files.missingModel.empty()) {
        missing_[run.id] = files.missingModel;
    }
}

void SessionDocument::Worker::readMovedModels() {
    const nlohmann::json models = base::parsedObject(file_->sessionText(kMovedModelsText).value_or(""));
    for (const auto& [name, path] : models.items()) {
        if (path.is_string()) {
            moved_[name] = path.get<std::string>();
        }
    }
}

/// A file that cannot be written keeps nothing; the answer then holds until it is closed.
void SessionDocument::Worker::keepMovedModel(const std::string& name, const std::string& path) {
    moved_[name] = path;
    found_.clear();
    publishRuns(false);
    if (file_->writable()) {
        file_->putSessionText(kMovedModelsText, base::compactText(nlohmann::json(moved_)));
    }
}

bool SessionDocument::Worker::readSome() {
    for (auto& [id, reader] : readers_) {
        if (reader.caughtUp || reader.failed) {
            continue;
        }
        try {
            readBatch(id, reader);
        } catch (const std::exception& error) {
            reader.failed = true;
            publishTimeline(id, reader, sentenceOf(error));
        }
        return true;
    }
    return false;
}

void SessionDocument::Worker::readBatch(RunId id, Reader& reader) {
    std::size_t got = 0;
    reader.total = reader.total == 0 ? file_->chunkCount(id) : reader.total;
    for (const std::string& stream : file_->streams(id)) {
        std::uint64_t& next = reader.next[stream];
        for (const base::ColumnChunk& chunk : file_->chunks(id, stream, next, kChunksAtOnce)) {
            reader.builder.add(chunk);
            next = chunk.sequence + 1;
            ++got;
        }
    }
    reader.chunks += got;
    reader.caughtUp = got == 0;
    reader.dirty = reader.dirty || got > 0;
    reader.reportedComplete = reader.reportedComplete && !reader.dirty;
    const auto now = std::chrono::steady_clock::now();
    if (reader.caughtUp ? !reader.reportedComplete : now - reader.published > kPublishEvery) {
        reader.published = now;
        reader.dirty = false;
        reader.reportedComplete = reader.caughtUp;
        publishTimeline(id, reader, {});
    }
}

void SessionDocument::Worker::publishTimeline(RunId id, Reader& reader, const QString& error) {
    TimelineState state{reader.caughtUp ? reader.builder.snapshot() : reader.builder.preview(), reader.caughtUp,
                        reader.chunks, std::max(reader.total, reader.chunks), error};
    toGui([id, state = std::move(state)](SessionDocument& d) mutable {
        d.timelines_[id] = std::move(state);
        d.reading_ = !d.timelines_[id].complete && d.timelines_[id].error.isEmpty();
        emit d.progress(d.reading_ ? QObject::tr("Reading events") : QString(), d.timelines_[id].chunksRead,
                        d.timelines_[id].chunksTotal);
        emit d.timelineChanged(id);
    });
}

} // namespace vitrine::ui
