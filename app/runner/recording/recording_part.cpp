// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/recording/recording_part.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "profiler/record/streams.h"

namespace vitrine::app {
namespace {

/// Chunks that wait for a session that cannot be written, at most.
constexpr std::size_t kMaxWaitingBytes = std::size_t{256} << 20;
/// What a row with so many bytes takes in the session, about: larger ones have pages of their own.
std::size_t rowBytes(std::size_t bytes) {
    constexpr std::size_t kRow = 96, kSmall = 1000, kPage = 4096;
    return kRow + (bytes <= kSmall ? bytes : (bytes + kPage - 1) / kPage * kPage);
}

std::size_t sizeOf(const base::ColumnChunk& chunk) {
    std::size_t bytes = 0;
    for (const base::Column& column : chunk.columns) {
        bytes += column.data.size() + column.name.size();
    }
    return rowBytes(bytes);
}

} // namespace

RecordingPart::RecordingPart(sessions::RunInfo info, std::shared_ptr<profiler::Recorder> recorder)
    : info_(std::move(info)), recorder_(std::move(recorder)),
      liveValues_(std::make_unique<nlohmann::json>(nlohmann::json::object())) {}

RecordingPart::~RecordingPart() = default;

void RecordingPart::appendText(const std::string& kind, std::string_view more) {
    const std::lock_guard lock(mutex_);
    std::string& text = texts_[kind];
    const std::size_t before = text.empty() ? 0 : rowBytes(text.size());
    text += more;
    bytes_ += rowBytes(text.size()) - before;
    changedTexts_.insert(kind);
}

void RecordingPart::setText(const std::string& kind, std::string body) {
    const std::lock_guard lock(mutex_);
    bytes_ += rowBytes(body.size());
    texts_[kind] = std::move(body);
    changedTexts_.insert(kind);
}

void RecordingPart::closeText(const std::string& kind) {
    const std::lock_guard lock(mutex_);
    closedTexts_.insert(kind);
}

void RecordingPart::setLiveValue(std::string_view name, const nlohmann::json& value) {
    const std::lock_guard lock(mutex_);
    (*liveValues_)[std::string(name)] = value;
    liveValuesChanged_ = true;
}

nlohmann::json RecordingPart::liveValues() const {
    const std::lock_guard lock(mutex_);
    return *liveValues_;
}

void RecordingPart::open(sessions::SessionFile& session) {
    info_.id = session.createRun(info_);
}

void RecordingPart::take(std::vector<base::ColumnChunk> chunks) {
    for (base::ColumnChunk& chunk : chunks) {
        // After the first chunk that is dropped all later ones are too: what is kept stays a whole beginning.
        full_ = full_ || waitingBytes_ > kMaxWaitingBytes;
        if (full_ && chunk.stream != profiler::GapStream::kName) {
            drop(chunk);
            continue;
        }
        waitingBytes_ += sizeOf(chunk);
        bytes_ += sizeOf(chunk);
        waiting_.push_back(std::move(chunk));
    }
}

void RecordingPart::drop(const base::ColumnChunk& chunk) {
    droppedRows_ += chunk.rows;
    base::GapEvent& gap = droppedGap_;
    gap.begin = gap.records == 0 ? chunk.timeBegin : std::min(gap.begin, chunk.timeBegin);
    gap.end = std::max(gap.end, chunk.timeEnd);
    gap.records += chunk.rows;
    gap.memoryRecords += profiler::isMemoryStream(chunk.stream) ? chunk.rows : 0;
}

void RecordingPart::collect(bool last) {
    if (collectedAll_) {
        return;
    }
    if (last && waitingBytes_ > kMaxWaitingBytes / 2) {
        take(recorder_->drain()); // finish() has only the gap to report, should the rest not fit
    }
    if (droppedGap_.records > 0) {
        recorder_->recordWithoutWaiting(std::exchange(droppedGap_, {}));
    }
    take(last ? recorder_->finish() : recorder_->drain());
    collectedAll_ = last;
    if (!std::exchange(began_, true)) {
        beganWith_ = bytes_.load();
    }
}

void RecordingPart::write(sessions::SessionFile& session, std::uint64_t lostElsewhere) {
    std::vector<sessions::RunText> changed;
    std::vector<std::string> closed;
    std::string live;
    {
        const std::lock_guard lock(mutex_);
        for (const std::string& kind : changedTexts_) {
            changed.push_back({kind, texts_[kind]});
        }
        changedTexts_.clear();
        closed.assign(closedTexts_.begin(), closedTexts_.end());
        if (std::exchange(liveValuesChanged_, false)) {
            live = liveValues_->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        }
    }
    try {
        session.appendChunks(info_.id, waiting_);
        waiting_.clear();
        waitingBytes_ = 0;
        for (const sessions::RunText& text : changed) {
            session.putText(info_.id, text);
        }
        if (!live.empty()) {
            session.setMetrics(info_.id, live);
        }
        const std::uint64_t lost = lostRecords() + lostElsewhere;
        if (lost != writtenLost_) {
            session.setLostRecords(info_.id, lost);
            writtenLost_ = lost;
        }
    } catch (...) {
        const std::lock_guard lock(mutex_);
        liveValuesChanged_ = liveValuesChanged_ || !live.empty();
        for (const sessions::RunText& text : changed) {
            changedTexts_.insert(text.kind);
        }
        throw;
    }
    const std::lock_guard lock(mutex_);
    for (const std::string& kind : closed) {
        texts_.erase(kind);
        closedTexts_.erase(kind);
    }
}

} // namespace vitrine::app
