// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One opened session file as the GUI sees it: the runs, which of them are A and B, and their timelines.
//
// Threads: the document belongs to the GUI thread and never waits there. The file is read, edited and polled by one
// worker thread of the document, the only one that touches the SessionFile; results come back as immutable snapshots
// through queued calls. While a run is in progress its tail is read at most 30 times a second.

#include <QObject>
#include <QString>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sessions/session_file.h"
#include "ui/models/session/session_keeping.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

using TimelinePtr = std::shared_ptr<const profiler::RunTimeline>;

/// What is known of a run's events so far.
struct TimelineState {
    TimelinePtr timeline;  ///< null until the first snapshot came
    bool complete = false; ///< everything that the file holds was read
    std::uint64_t chunksRead = 0;
    std::uint64_t chunksTotal = 0; ///< in the file when reading began; 0: not known yet
    QString error;                 ///< one sentence; the timeline keeps what was read before
};

/// Opens a session file; called on the worker thread. The default opens read-write and falls back to read-only.
using SessionOpener = std::function<std::unique_ptr<sessions::SessionFile>(const std::string& path)>;

class SessionDocument final : public QObject {
    Q_OBJECT

public:
    explicit SessionDocument(QObject* parent = nullptr, SessionOpener opener = {});
    ~SessionDocument() override; ///< stops the worker and waits for the chunk in its hands

    /// Opens another file; what was shown before goes when the new one is there, and stays when that is no session.
    /// Ends in opened() or openFailed().
    void open(const QString& path);
    void close();
    bool isOpen() const { return open_; }
    const QString& path() const { return path_; }
    /// Runs can be neither added, renamed nor deleted. Notes and tags can be edited: see edit().
    bool readOnly() const { return readOnly_; }
    /// Whether what is shown is on the disk; looked at twice a second.
    SessionKeeping keeping() const;
    /// Copies all that is shown to a new session, also of a file that is gone. Ends in copySaved() or copyFailed().
    void saveCopy(const QString& path, bool replace);

    /// Oldest first; a copy of what the file held at the last change.
    const std::vector<sessions::RunInfo>& runs() const { return runs_; }
    /// The experiments of runs name their files by where these are now, see engine/workload/experiment/stored_files.h.
    const sessions::RunInfo* run(sessions::RunId id) const;
    /// The model of the run, as its experiment names it, where it was not found; empty where nothing is missing.
    QString missingModel(sessions::RunId id) const;
    /// Says where a model is now, for all runs that name it so. The session keeps it where it can be written.
    void placeModel(const QString& name, const QString& path);

    /// A is the run one looks at, B the baseline; 0 is none.
    sessions::RunId runA() const { return a_; }
    sessions::RunId runB() const { return b_; }
    void setRunA(sessions::RunId id);
    void setRunB(sessions::RunId id);
    /// Makes the run A or B as a picker does: the run of the other place changes places with this one's, because no
    /// run is its own baseline. False: there is no other to change places with, and nothing was done.
    bool chooseRun(bool isA, sessions::RunId id);
    void swapRuns();

    /// The timeline of a run; the first call for a run starts reading it. timelineChanged() says when there is more.
    const TimelineState& timeline(sessions::RunId id);
    /// Stops reading timelines; what was read stays.
    void stopReading();
    bool reading() const { return reading_; }

    /// Runs `job` on the worker with the open file; afterwards the list of runs is read again.
    /// Notes and tags that the file does not take are kept in memory; what else it throws becomes editFailed(). Without
    /// an open file nothing happens.
    void edit(std::function<void(sessions::SessionFile&)> job);
    /// Reads all texts of a run on the worker and hands them to `done` on the GUI thread, unless `context` has gone.
    void readTexts(sessions::RunId id, QObject* context, std::function<void(std::vector<sessions::RunText>)> done);
    /// A text of the session itself, such as the queue; nothing where it has none.
    void readSessionText(const std::string& name, QObject* context,
                         std::function<void(std::optional<std::string>)> done);
    void readNotes(sessions::RunId id, QObject* context, std::function<void(std::vector<sessions::TimelineNote>)> done);

    /// For tests and for values that no file holds: shows these runs and timelines as if they had been read.
    void show(const QString& name, std::vector<sessions::RunInfo> runs,
              const std::map<sessions::RunId, TimelinePtr>& timelines);

signals:
    void opened();
    void openFailed(const QString& path, const QString& error);
    void closed();
    void runsChanged();      ///< list, statuses, metrics, names, tags
    void selectionChanged(); ///< A or B
    void timelineChanged(qint64 run);
    void notesChanged(qint64 run); ///< whoever edits a run's timeline notes emits it; readNotes() then sees the edit
    void editFailed(const QString& error);
    void runDamaged(const QString& sentence); ///< a run that runs() leaves out; once for each
    void keepingChanged();
    void copySaved(const QString& path);
    void copyFailed(const QString& error);
    /// "Opening NAME, 41 of 98 chunks"; total 0 means unknown, what empty means done.
    void progress(const QString& what, quint64 done, quint64 total);

private:
    class Worker;
    friend class Worker;
    void takeOpening(); ///< the file that was opened takes the place of the one before
    void dropOpening(); ///< the file that was to be opened is no session
    void takeRuns(std::vector<sessions::RunInfo> runs);
    void choose();

    SessionOpener opener_;
    std::unique_ptr<Worker> worker_;
    std::unique_ptr<Worker> opening_; ///< of the file that will be shown instead; null: none
    QString path_;
    bool open_ = false, readOnly_ = false, reading_ = false;
    SessionKeeping keeping_;
    int editsUnderWay_ = 0;
    std::vector<sessions::RunInfo> runs_;
    std::map<sessions::RunId, TimelineState> timelines_;
    std::map<sessions::RunId, std::string> missingModels_;
    sessions::RunId a_ = 0, b_ = 0;
};

/// "out of memory", "done", "interrupted", ...: the words of lists and pickers.
QString statusText(sessions::RunStatus status);

/// "qlora-96k, out of memory": a run's name with its end where that is not "done".
QString runTitle(const sessions::RunInfo& run);

} // namespace vitrine::ui
