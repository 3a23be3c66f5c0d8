// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One run of a session while it is recorded: its texts and live values from any thread, its recorder's chunks and the
// file by the one thread that writes.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/record/recorder.h"
#include "sessions/session_file.h"

namespace vitrine::app {

class RecordingPart {
public:
    RecordingPart(sessions::RunInfo info, std::shared_ptr<profiler::Recorder> recorder);
    ~RecordingPart();
    RecordingPart(const RecordingPart&) = delete; // several threads hold its address
    RecordingPart& operator=(const RecordingPart&) = delete;

    // --- any thread

    void appendText(const std::string& kind, std::string_view more);
    void setText(const std::string& kind, std::string body);
    /// Says that the text is complete. Its memory is freed when it has been written.
    void closeText(const std::string& kind);
    void setLiveValue(std::string_view name, const nlohmann::json& value);
    nlohmann::json liveValues() const;
    /// Bytes of texts and encoded events that the session holds of this part, or will hold soon.
    std::uint64_t bytes() const { return bytes_; }
    /// The same without what was alive when it began.
    std::uint64_t newBytes() const { return bytes_ - beganWith_; }

    // --- the writing thread

    const sessions::RunInfo& info() const { return info_; } ///< id 0: open() was not called
    /// Creates the run. Throws what that throws.
    void open(sessions::SessionFile& session);
    /// Takes what the recorder has; `last`: nothing more will come to it.
    void collect(bool last);
    /// Writes what there is. Throws what the session throws; nothing is lost then.
    void write(sessions::SessionFile& session, std::uint64_t lostElsewhere);
    bool collectedAll() const { return collectedAll_; }
    /// Records that are lost for good: by the recorder, and because the session could not be written for too long.
    std::uint64_t lostRecords() const { return recorder_->lostRecords() + droppedRows_; }

private:
    void take(std::vector<base::ColumnChunk> chunks);
    void drop(const base::ColumnChunk& chunk);

    sessions::RunInfo info_;
    const std::shared_ptr<profiler::Recorder> recorder_;
    std::atomic<std::uint64_t> bytes_ = 0;
    std::atomic<std::uint64_t> beganWith_ = 0; ///< of bytes_

    mutable std::mutex mutex_; ///< guards what follows up to the writing thread's own
    std::map<std::string, std::string> texts_;
    std::set<std::string> changedTexts_;         ///< kinds
    std::set<std::string> closedTexts_;          ///< kinds that are not written for good
    std::unique_ptr<nlohmann::json> liveValues_; ///< never null
    bool liveValuesChanged_ = false;

    std::vector<base::ColumnChunk> waiting_;
    std::size_t waitingBytes_ = 0;
    std::uint64_t droppedRows_ = 0;
    base::GapEvent droppedGap_; ///< of droppedRows_, what was not recorded yet
    std::uint64_t writtenLost_ = 0;
    bool full_ = false;
    bool began_ = false; ///< something was collected
    bool collectedAll_ = false;
};

} // namespace vitrine::app
