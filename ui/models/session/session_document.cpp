// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/session/session_document.h"

#include <QFileInfo>
#include <QPointer>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_values.h"
#include "engine/workload/experiment/results.h"
#include "profiler/timeline/run_timeline_builder.h"
#include "ui/models/session/session_worker.h"

namespace vitrine::ui {

using sessions::RunId;
using sessions::RunInfo;
using sessions::RunStatus;
using sessions::SessionFile;

namespace {

/// A log is written beside the file.
bool canBeWritten(const QString& path) {
    const QFileInfo file(path);
    return file.isWritable() && QFileInfo(file.absolutePath()).isWritable();
}

std::unique_ptr<SessionFile> openForGui(const std::string& path) {
    if (!canBeWritten(QString::fromStdString(path))) {
        return SessionFile::open(path, sessions::OpenMode::ReadOnly);
    }
    return SessionFile::open(path, sessions::OpenMode::ReadWrite);
}

/// The run that goes on where this one has ended; 0: none.
RunId nextPart(const RunInfo* run) {
    return run == nullptr || run->status == RunStatus::Running
               ? 0
               : static_cast<RunId>(
                     engine::numberOf(base::parsedObject(run->metricsJson), engine::result::kNextRun).value_or(0));
}

} // namespace

SessionDocument::SessionDocument(QObject* parent, SessionOpener opener) : QObject(parent), opener_(std::move(opener)) {
    if (!opener_) {
        opener_ = openForGui;
    }
}

SessionDocument::~SessionDocument() = default;

void SessionDocument::open(const QString& path) {
    const QString file = QFileInfo(path).absoluteFilePath();
    if (open_ && worker_ && QFileInfo(file) != QFileInfo(path_)) {
        opening_ = std::make_unique<Worker>(*this, file.toStdString(), opener_);
        return;
    }
    close();
    path_ = file;
    readOnly_ = !canBeWritten(path_);
    worker_ = std::make_unique<Worker>(*this, path_.toStdString(), opener_);
}

void SessionDocument::takeOpening() {
    if (opening_) {
        std::unique_ptr<Worker> next = std::move(opening_);
        close();
        worker_ = std::move(next);
        path_ = QString::fromStdString(worker_->path_);
        readOnly_ = !canBeWritten(path_);
    }
}

void SessionDocument::dropOpening() {
    opening_.reset();
}

void SessionDocument::close() {
    opening_.reset();
    worker_.reset();
    const bool was = open_;
    open_ = false;
    reading_ = false;
    keeping_ = {};
    editsUnderWay_ = 0;
    path_.clear();
    runs_.clear();
    timelines_.clear();
    missingModels_.clear();
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

QString SessionDocument::missingModel(RunId id) const {
    const auto found = missingModels_.find(id);
    return found == missingModels_.end() ? QString() : QString::fromStdString(found->second);
}

void SessionDocument::placeModel(const QString& name, const QString& path) {
    if (worker_) {
        worker_->post([worker = worker_.get(), name, path](SessionFile&) {
            worker->keepMovedModel(name.toStdString(), path.toStdString());
        });
    }
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

bool SessionDocument::chooseRun(bool isA, RunId id) {
    const RunId mine = isA ? a_ : b_, other = isA ? b_ : a_;
    if (id != 0 && id == other && id != mine) {
        if (mine == 0) {
            return false;
        }
        swapRuns();
        return true;
    }
    isA ? setRunA(id) : setRunB(id);
    return true;
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
    ++editsUnderWay_;
    emit keepingChanged();
    worker_->post([worker = worker_.get(), body = std::move(job)](SessionFile&) {
        try {
            worker->edit(body);
        } catch (const std::exception& error) {
            worker->toGui([text = Worker::sentenceOf(error)](SessionDocument& d) { emit d.editFailed(text); });
        }
        worker->publishRuns(false);
        worker->checkKeeping();
        worker->toGui([](SessionDocument& d) {
            --d.editsUnderWay_;
            emit d.keepingChanged();
        });
    });
}

SessionKeeping SessionDocument::keeping() const {
    const bool idle = keeping_.state == SessionKeeping::State::Saved;
    SessionKeeping now = keeping_;
    now.state = idle && editsUnderWay_ > 0 ? SessionKeeping::State::Saving
                : idle && readOnly_        ? SessionKeeping::State::ReadOnly
                                           : now.state;
    return now;
}

void SessionDocument::saveCopy(const QString& path, bool replace) {
    if (!worker_) {
        return;
    }
    worker_->post([worker = worker_.get(), path, replace](SessionFile& file) {
        QString error;
        try {
            file.saveCopy(path.toStdString(), replace);
        } catch (const std::exception& failure) {
            error = Worker::sentenceOf(failure);
        }
        worker->toGui(
            [path, error](SessionDocument& d) { error.isEmpty() ? emit d.copySaved(path) : emit d.copyFailed(error); });
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

void SessionDocument::readSessionText(const std::string& name, QObject* context,
                                      std::function<void(std::optional<std::string>)> done) {
    if (!worker_) {
        return;
    }
    worker_->post(
        [worker = worker_.get(), name, guard = QPointer<QObject>(context), body = std::move(done)](SessionFile& f) {
            worker->toGui([text = f.sessionText(name), guard, body](SessionDocument&) mutable {
                if (guard) {
                    body(std::move(text));
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
    const RunInfo* const shown = run(a_);
    const bool live = shown != nullptr && shown->status == RunStatus::Running;
    runs_ = std::move(runs);
    const RunId a = a_, b = b_;
    // A server's run goes on in its next part, and who watches it goes along.
    while (live && nextPart(run(a_)) > a_ && run(nextPart(run(a_))) != nullptr) {
        a_ = nextPart(run(a_));
    }
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

QString statusText(RunStatus status) {
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
    return run.status == RunStatus::Done ? title : title + QStringLiteral(", ") + statusText(run.status);
}

} // namespace vitrine::ui
