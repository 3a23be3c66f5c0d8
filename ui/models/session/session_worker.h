// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The thread of a session document; only session_document.cpp and session_worker.cpp know it.

#include <QMetaObject>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "engine/workload/experiment/stored_files.h"
#include "profiler/timeline/run_timeline_builder.h"
#include "ui/models/session/session_document.h"

namespace vitrine::ui {

/// The thread that owns the file. Jobs run in order; between them the worker reads chunks and polls for changes.
class SessionDocument::Worker {
public:
    Worker(SessionDocument& document, std::string path, SessionOpener opener)
        : document_(document), path_(std::move(path)), opener_(std::move(opener)), thread_([this] { run(); }) {}

    Worker(const Worker&) = delete; // its thread holds its address
    Worker& operator=(const Worker&) = delete;
    ~Worker() {
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
        }
        wake_.notify_all();
        thread_.join();
    }

    static QString sentenceOf(const std::exception& error);

    /// Does an edit; in memory where the file does not take it. Throws what the edit throws there too. On the worker.
    void edit(const std::function<void(sessions::SessionFile&)>& job);
    /// Looks whether what is shown is on the disk, and writes edits that wait. On the worker.
    void checkKeeping();

    void post(std::function<void(sessions::SessionFile&)> job) {
        {
            const std::lock_guard lock(mutex_);
            jobs_.push_back(std::move(job));
        }
        wake_.notify_all();
    }

    void want(sessions::RunId id) {
        post([this, id](sessions::SessionFile&) { readers_.try_emplace(id); });
    }

    void setReading(bool on) {
        readingAllowed_ = on;
        wake_.notify_all();
    }

private:
    struct Reader {
        profiler::RunTimelineBuilder builder;
        std::map<std::string, std::uint64_t> next; ///< next sequence of each stream
        std::uint64_t chunks = 0, total = 0;
        bool caughtUp = false;
        bool failed = false;
        bool dirty = false; ///< read more than was published
        bool reportedComplete = false;
        std::chrono::steady_clock::time_point published{};
    };

    template <typename F> void toGui(F&& call) {
        QMetaObject::invokeMethod(
            &document_,
            [self = this, document = &document_, body = std::forward<F>(call)]() mutable {
                // A queued call of a worker that was replaced has nothing to say any more.
                if (document->worker_.get() == self || document->opening_.get() == self) {
                    body(*document);
                }
            },
            Qt::QueuedConnection);
    }

    void run() noexcept;
    /// One job, one batch of chunks or one wait. False: the document is going.
    bool step() noexcept;
    void waitForWork();
    void poll();
    void publishRuns(bool first);
    /// Says of the run's files where they are now. On the worker.
    void findFiles(sessions::RunInfo& run);
    void readMovedModels();
    void keepMovedModel(const std::string& name, const std::string& path);
    /// Reads one batch of the first run that is not read to its end. False: all are up to date.
    bool readSome();
    void readBatch(sessions::RunId id, Reader& reader);
    void publishTimeline(sessions::RunId id, Reader& reader, const QString& error);

    SessionDocument& document_;
    const std::string path_;
    SessionOpener opener_;
    std::unique_ptr<sessions::SessionFile> file_; // worker thread only
    std::map<sessions::RunId, Reader> readers_;   // worker thread only
    struct FoundFiles {
        std::string experiment, environment; ///< of the run when its files were looked for
        engine::StoredFiles files;
    };
    std::map<sessions::RunId, FoundFiles> found_;    ///< worker thread only
    std::map<std::string, std::string> moved_;       ///< models by their name in experiments; worker thread only
    std::map<sessions::RunId, std::string> missing_; ///< models of runs that were not found; worker thread only
    std::set<sessions::RunId> toldDamage_;           ///< runs that were told to be damaged; worker thread only
    std::uint64_t seen_ = 0;
    SessionKeeping keeping_;
    QString whyWaiting_;
    std::chrono::steady_clock::time_point keepingChecked_;
    bool live_ = false;
    std::atomic<bool> readingAllowed_{true};

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::function<void(sessions::SessionFile&)>> jobs_;
    bool ending_ = false;

    friend class SessionDocument;
    std::thread thread_; // last: starts when everything above is there
};

} // namespace vitrine::ui
