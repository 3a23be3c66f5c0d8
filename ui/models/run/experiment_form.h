// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The values of an experiment while it is edited: one text in command-line form for each key of the option table.
// Knows which are changed, which are wrong and why, and writes the experiment and its command line. GUI thread.

#include <QObject>
#include <QString>
#include <QStringList>
#include <map>
#include <nlohmann/json_fwd.hpp>

#include "engine/workload/experiment/experiment.h"

namespace vitrine::ui {

class ExperimentForm final : public QObject {
    Q_OBJECT

public:
    /// Of the first workload of the table.
    explicit ExperimentForm(QObject* parent = nullptr);

    const QString& workload() const { return workload_; }
    /// Its row in the table of workloads; null for a name that the table does not have.
    const engine::Workload* row() const;
    void setWorkload(const QString& workload);
    bool plan() const { return text(QStringLiteral("plan")) == QLatin1String("true"); }

    /// Keys that the workload takes, in the order of the table.
    std::vector<const engine::OptionSpec*> options() const;

    QString text(const QString& key) const; ///< the default where nothing was set
    void setText(const QString& key, const QString& text);
    void reset(const QString& key);
    void resetAll();
    bool changed(const QString& key) const;
    /// Why the text of a field cannot be read; empty: it can.
    QString error(const QString& key) const;
    bool applies(const QString& key) const;

    /// The first thing that keeps the experiment from starting: key and sentence, both empty when it can.
    std::pair<QString, QString> problem() const;
    /// What was set, without defaults. Fields that cannot be read are left out.
    nlohmann::json experiment() const;
    /// The prompt is what the model reads: no other field names an input.
    bool promptUsed() const;
    /// The experiment as JSON text, without a prompt that is not used.
    std::string experimentText() const;
    /// The same to be priced: with the least prompt where an input is missing; empty while no model is named.
    std::string priceableText() const;
    /// Takes a spec over; keys that are no options are ignored. Returns an error for what is no experiment.
    QString load(const QString& json);
    /// "vitrine generate --model DIR --prompt 'text'", quoted for a POSIX shell.
    QString commandLine() const;

    static QString defaultText(const QString& key);
    static QString label(const QString& key); ///< "Max new tokens"
    /// The values of an option that is a choice, and how forms write them; one that may stay unset can be empty.
    static std::vector<std::pair<QString, QString>> choices(const QString& key);

signals:
    void changedText(const QString& key);
    void reloaded(); ///< workload or everything changed

private:
    QString workload_;
    std::map<QString, QString> texts_; ///< only what differs from the default
};

/// A word as a POSIX shell reads it back.
QString shellQuoted(const QString& word);

} // namespace vitrine::ui
