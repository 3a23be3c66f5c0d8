// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs the same trace with one number of slots after the other, under one kind of batching or both. Belongs to the GUI
// thread; a run that somebody else starts in between only makes the next one of the sweep wait.

#include <QObject>
#include <deque>
#include <string>
#include <vector>

#include "sessions/session_file.h"
#include "ui/models/common/run_controller.h"

namespace vitrine::ui {

/// "4, 8,16" as numbers of slots, each once in their order; empty when something in it is none (1 to 4,096, 32 at
/// most).
std::vector<std::int32_t> parseSlotCounts(const QString& text);

/// The experiments of a sweep as JSON, from one of its runs; they write no files of their own. Empty for runs without a
/// trace.
std::vector<std::string> sweepExperiments(const sessions::RunInfo& run, const std::vector<std::int32_t>& slotCounts,
                                          bool isStatic, bool isContinuous);

class SweepRunner final : public QObject {
    Q_OBJECT

public:
    /// `runs` may be null: then nothing starts.
    SweepRunner(RunController* runs, QObject* parent);

    bool running() const { return total_ > 0; }
    int done() const { return done_; }
    int total() const { return total_; }
    void start(std::vector<std::string> experiments, const QString& sessionFile);
    /// Ends the run in progress too.
    void stop();

signals:
    void changed();                     ///< running(), done(), total()
    void failed(const QString& reason); ///< one sentence; what is left of the sweep is given up

private:
    void next();
    void onEnded(const QString& status, const QString& error);
    void finish(const QString& reason);

    RunController* runs_;
    std::deque<std::string> waiting_;
    QString file_;
    bool own_ = false; ///< the run in progress belongs to the sweep
    int done_ = 0, total_ = 0;
};

} // namespace vitrine::ui
