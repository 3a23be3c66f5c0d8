// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The filter language of run lists: words and conditions that must all hold.
//
//   peak>40GiB  tok/s>=100  time<2s  tag:oom  workload:generate  -model:tiny  generated_tokens>64  "two words"  text
//
// A condition is KEY OPERATOR VALUE with one of > >= < <= = and ":" (contains). Keys: name, model, workload, tag,
// state, backend, device, note, error; peak (a size), tok/s, time (s, ms), id; any other key is a number of the
// metrics. Text compares without regard to case. A word alone is looked for everywhere; "-" before a term turns it
// around.

#include <QString>
#include <vector>

#include "sessions/session_file.h"
#include "ui/models/session/run_summary.h"

namespace vitrine::ui {

class RunFilter {
public:
    /// Terms that cannot be read are left out and named in error().
    static RunFilter parse(const QString& text);

    bool empty() const { return terms_.empty(); }
    const QString& error() const { return error_; }
    bool accepts(const sessions::RunInfo& run, const RunSummary& facts) const;

private:
    enum class Operator : std::uint8_t { Contains, Less, LessEqual, Greater, GreaterEqual, Equal };
    struct Term {
        QString key; ///< empty: anywhere
        Operator op = Operator::Contains;
        QString text;
        double number = 0;
        bool negated = false;
    };
    bool readTerm(QString word);
    static bool holds(const Term& term, const sessions::RunInfo& run, const RunSummary& facts);

    std::vector<Term> terms_;
    QString error_;
};

/// Seconds from start to end; nothing while the run goes on.
std::optional<double> runSeconds(const sessions::RunInfo& run);
/// Decoded tokens a second; nothing for runs that decode nothing.
std::optional<double> runTokensPerSecond(const sessions::RunInfo& run);

} // namespace vitrine::ui
