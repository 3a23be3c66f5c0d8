// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Starts and stops runs and prices them, without knowing how: the programs implement it over app::RunHost. Belongs to
// the GUI thread; every signal is emitted there, and no call waits. Experiments are handed over as sessions and files
// hold them: one JSON object as text.

#include <QObject>
#include <QString>
#include <memory>
#include <string>
#include <vector>

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

/// Another token that the model found likely at a place.
struct LikelyToken {
    int id = 0;
    QString text; ///< empty: the run did not say
    double logprob = 0;
};

/// One token as it arrives.
struct StreamedToken {
    int request = 0;
    int index = 0; ///< number in the answer, from 0
    int id = 0;
    QString text;    ///< may be empty while a character is not complete
    QString channel; ///< "analysis", "final"; empty for models without channels
    double logprob = 0;
    double seconds = 0;              ///< since the run's start
    std::vector<LikelyToken> likely; ///< the likeliest first, empty when none were asked for
};

class RunController : public QObject {
    Q_OBJECT

public:
    using QObject::QObject;

    /// Starts an experiment; `sessionFile` empty keeps nothing. Emits refused() when it cannot start.
    virtual void start(const std::string& experimentJson, const QString& sessionFile) = 0;
    virtual void stop() = 0;
    virtual bool running() const = 0;
    /// Asks a training run that goes on to write a checkpoint after its present step.
    virtual void saveCheckpoint() {}

    /// Gives back what runs have left on the device for the next one; of a run in progress at its end.
    virtual void releaseMemory() {}
    /// Bytes of weights that were left there when the last run ended; 0 after releaseMemory().
    virtual quint64 keptBytes() const { return 0; }

    /// Prices an experiment on the Meta backend, in the background. A later call replaces one that has not begun;
    /// priced() carries the ticket that this returned. A run in progress does not hold it up.
    virtual quint64 price(const std::string& experimentJson) = 0;

    /// The experiment as a plan of what would run it, for pricing on another thread. Throws what is wrong with it.
    virtual std::string asPlan(const std::string& experimentJson) const;

    /// Runs an experiment as a plan on the Meta backend, in the background, and hands over its events. A later call
    /// replaces one that has not begun; rehearsed() carries the ticket. 0: this controller cannot.
    virtual quint64 rehearse(const std::string& experimentJson);

signals:
    void started(qint64 run); ///< number in the session file, 0 without one
    void refused(const QString& error);
    /// A sentence about the run that is beginning: the process of the last one was lost.
    void notice(const QString& text);
    void progress(const QString& what, quint64 done, quint64 total);
    void token(const vitrine::ui::StreamedToken& token);
    void metric(const QString& name, double value);
    /// `status` is "done", "failed", "out_of_memory" or "cancelled"; `metricsJson` the fields of `--json`.
    void ended(const QString& status, const QString& error, const QString& metricsJson);
    /// `metricsJson` as of `vitrine plan --json`; `error` is empty when the price is good.
    void priced(quint64 ticket, const QString& metricsJson, const QString& error);
    /// Null when the plan failed; `error` says why.
    void rehearsed(quint64 ticket, std::shared_ptr<const profiler::RunTimeline> timeline, const QString& error);
};

inline std::string RunController::asPlan(const std::string& experimentJson) const {
    return experimentJson;
}

inline quint64 RunController::rehearse(const std::string&) {
    return 0;
}

} // namespace vitrine::ui
