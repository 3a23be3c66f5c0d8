// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/session_document.h"

#include <QFileInfo>
#include <QPointer>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/error.h"

namespace vitrine::ui {

using sessions::RunId;
using sessions::RunInfo;
using sessions::RunStatus;
using sessions::SessionFile;

namespace {

constexpr std::chrono::milliseconds kLivePoll{34};  // at most 30 times a second
constexpr std::chrono::milliseconds kIdlePoll{500}; // other processes may append to the file
constexpr std::chrono::milliseconds kPublishEvery{100};
constexpr std::size_t kChunksAtOnce = 16;

QString sentenceOf(const std::exception& error) {
    return QString::fromUtf8(error.what());
}

std::unique_ptr<SessionFile> openForGui(const std::string& path) {
    if (!QFileInfo(QString::fromStdString(path)).isWritable()) {
        return SessionFile::open(path, sessions::OpenMode::ReadOnly);
    }
    return SessionFile::open(path, sessions::OpenMode::ReadWrite);
}

} // namespace

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

    void post(std::function<void(SessionFile&)> job) {
        {
            const std::lock_guard lock(mutex_);
            jobs_.push_back(std::move(job));
        }
        wake_.notify_all();
    }

    void want(RunId id) {
        post([this, id](SessionFile&) { readers_.try_emplace(id); });
    }

    void setReading(bool on) {
        readingAllowed_ = on;
        wake_.notify_all();
    }

private:
    struct Reader {
        profiler::MemoryTimelineBuilder builder;
        std::map<std::string, std::uint64_t> next; ///< next sequence of each stream
        std::uint64_t chunks = 0;
        bool caughtUp = false;
        bool failed = false;
        bool dirty = false; ///< read more than was published
        bool toldComplete = false;
        std::chrono::steady_clock::time_point published{};
    };

    template <typename F> void toGui(F&& call) {
        QMetaObject::invokeMethod(
            &document_,
            [self = this, document = &document_, body = std::forward<F>(call)]() mutable {
                // A queued call of a worker that was replaced has nothing to say any more.
                if (document->worker_.get() == self) {
                    body(*document);
                }
            },
            Qt::QueuedConnection);
    }

    void run() noexcept {
        try {
            file_ = opener_(path_);
            publishRuns(true);
        } catch (const std::exception& error) {
            file_.reset();
            toGui([text = sentenceOf(error), path = QString::fromStdString(path_)](SessionDocument& d) {
                emit d.openFailed(path, text);
            });
            return;
        }
        while (step()) {
        }
        file_.reset();
    }

    /// One job, one batch of chunks or one wait. False: the document is going.
    bool step() noexcept {
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

    void waitForWork() {
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, live_ ? kLivePoll : kIdlePoll, [this] { return ending_ || !jobs_.empty(); });
    }

    void poll() {
        const std::uint64_t now = file_->changeCounter();
        if (now == seen_) {
            return;
        }
        publishRuns(false);
        for (auto& [id, reader] : readers_) {
            reader.caughtUp = false;
        }
    }

    void publishRuns(bool first) {
        seen_ = file_->changeCounter();
        std::vector<RunInfo> runs = file_->runs();
        live_ = std::any_of(runs.begin(), runs.end(), [](const RunInfo& r) { return r.status == RunStatus::Running; });
        toGui([list = std::move(runs), first](SessionDocument& d) mutable {
            if (first) {
                d.open_ = true;
                d.runs_.clear();
                d.timelines_.clear();
            }
            d.takeRuns(std::move(list));
            if (first) {
                emit d.opened();
            }
        });
    }

    /// Reads one batch of the first run that lags behind. False: all are up to date.
    bool readSome() {
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

    void readBatch(RunId id, Reader& reader) {
        std::size_t got = 0;
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
        reader.toldComplete = reader.toldComplete && !reader.dirty;
        const auto now = std::chrono::steady_clock::now();
        if (reader.caughtUp ? !reader.toldComplete : now - reader.published > kPublishEvery) {
            reader.published = now;
            reader.dirty = false;
            reader.toldComplete = reader.caughtUp;
            publishTimeline(id, reader, {});
        }
    }

    void publishTimeline(RunId id, Reader& reader, const QString& error) {
        TimelineState state{reader.caughtUp ? reader.builder.snapshot() : reader.builder.preview(), reader.caughtUp,
                            reader.chunks, error};
        toGui([id, state = std::move(state)](SessionDocument& d) mutable {
            d.timelines_[id] = std::move(state);
            d.reading_ = !d.timelines_[id].complete && d.timelines_[id].error.isEmpty();
            emit d.progress(d.reading_ ? QObject::tr("Reading events") : QString(), d.timelines_[id].chunksRead, 0);
            emit d.timelineChanged(id);
        });
    }

    SessionDocument& document_;
    const std::string path_;
    SessionOpener opener_;
    std::unique_ptr<SessionFile> file_; // worker thread only
    std::map<RunId, Reader> readers_;   // worker thread only
    std::uint64_t seen_ = 0;
    bool live_ = false;
    std::atomic<bool> readingAllowed_{true};

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::function<void(SessionFile&)>> jobs_;
    bool ending_ = false;

    friend class SessionDocument;
    std::thread thread_; // last: starts when everything above is there
};

SessionDocument::SessionDocument(QObject* parent, SessionOpener opener) : QObject(parent), opener_(std::move(opener)) {
    if (!opener_) {
        opener_ = openForGui;
    }
}

SessionDocument::~SessionDocument() = default;

void SessionDocument::open(const QString& path) {
    close();
    path_ = QFileInfo(path).absoluteFilePath();
    readOnly_ = !QFileInfo(path_).isWritable();
    worker_ = std::make_unique<Worker>(*this, path_.toStdString(), opener_);
}

void SessionDocument::close() {
    worker_.reset();
    const bool was = open_;
    open_ = false;
    reading_ = false;
    path_.clear();
    runs_.clear();
    timelines_.clear();
    a_ = b_ = 0;
    if (was) {
        emit closed();
        emit runsChanged();
        emit selectionChanged();
    }
}

const RunInfo* SessionDocument::run(RunId id) const {
    const auto found = std::find_if(runs_.begin(), runs_.end(), [id](const RunInfo& r) { return r.id == id; });
    return found == runs_.end() ? nullptr : &*found;
}

void SessionDocument::setRunA(RunId id) {
    if (a_ != id && (id == 0 || run(id) != nullptr)) {
        a_ = id;
        emit selectionChanged();
    }
}

void SessionDocument::setRunB(RunId id) {
    if (b_ != id && (id == 0 || run(id) != nullptr)) {
        b_ = id;
        emit selectionChanged();
    }
}

void SessionDocument::swapRuns() {
    if (b_ != 0) {
        std::swap(a_, b_);
        emit selectionChanged();
    }
}

const TimelineState& SessionDocument::timeline(RunId id) {
    const auto [found, fresh] = timelines_.try_emplace(id);
    if (fresh && worker_ && id != 0) {
        reading_ = true;
        worker_->want(id);
    }
    return found->second;
}

void SessionDocument::stopReading() {
    if (worker_) {
        worker_->setReading(false);
    }
    reading_ = false;
    emit progress({}, 0, 0);
}

void SessionDocument::edit(std::function<void(SessionFile&)> job) {
    if (!worker_) {
        return;
    }
    worker_->post([worker = worker_.get(), body = std::move(job)](SessionFile& file) {
        try {
            body(file);
        } catch (const std::exception& error) {
            worker->toGui([text = sentenceOf(error)](SessionDocument& d) { emit d.editFailed(text); });
        }
        worker->publishRuns(false);
    });
}

void SessionDocument::readTexts(RunId id, QObject* context, std::function<void(std::vector<sessions::RunText>)> done) {
    if (!worker_) {
        return;
    }
    worker_->post(
        [worker = worker_.get(), id, guard = QPointer<QObject>(context), body = std::move(done)](SessionFile& f) {
            worker->toGui([texts = f.texts(id), guard, body](SessionDocument&) mutable {
                if (guard) {
                    body(std::move(texts));
                }
            });
        });
}

void SessionDocument::readNotes(RunId id, QObject* context,
                                std::function<void(std::vector<sessions::TimelineNote>)> done) {
    if (!worker_) {
        return;
    }
    worker_->post(
        [worker = worker_.get(), id, guard = QPointer<QObject>(context), body = std::move(done)](SessionFile& f) {
            worker->toGui([notes = f.timelineNotes(id), guard, body](SessionDocument&) mutable {
                if (guard) {
                    body(std::move(notes));
                }
            });
        });
}

void SessionDocument::show(const QString& name, std::vector<RunInfo> runs,
                           const std::map<RunId, TimelinePtr>& timelines) {
    close();
    path_ = name;
    open_ = true;
    for (const auto& [id, timeline] : timelines) {
        timelines_[id] = TimelineState{timeline, true, 0, {}};
    }
    takeRuns(std::move(runs));
    emit opened();
    for (const auto& [id, timeline] : timelines) {
        emit timelineChanged(id);
    }
}

void SessionDocument::takeRuns(std::vector<RunInfo> runs) {
    runs_ = std::move(runs);
    const RunId a = a_, b = b_;
    choose();
    emit runsChanged();
    if (a != a_ || b != b_) {
        emit selectionChanged();
    }
}

void SessionDocument::choose() {
    if (run(b_) == nullptr) {
        b_ = 0;
    }
    if (run(a_) == nullptr) {
        a_ = runs_.empty() ? 0 : runs_.back().id;
    }
}

QString statusWords(RunStatus status) {
    switch (status) {
    case RunStatus::Running:
        return QObject::tr("running");
    case RunStatus::Done:
        return QObject::tr("done");
    case RunStatus::Failed:
        return QObject::tr("failed");
    case RunStatus::OutOfMemory:
        return QObject::tr("out of memory");
    case RunStatus::Cancelled:
        return QObject::tr("stopped");
    case RunStatus::Interrupted:
        return QObject::tr("interrupted");
    }
    return {};
}

QString runTitle(const RunInfo& run) {
    QString title = QString::fromStdString(run.name.empty() ? run.workload : run.name);
    if (title.isEmpty()) {
        title = QObject::tr("Run %1").arg(run.id);
    }
    return run.status == RunStatus::Done ? title : title + QStringLiteral(", ") + statusWords(run.status);
}

} // namespace vitrine::ui
