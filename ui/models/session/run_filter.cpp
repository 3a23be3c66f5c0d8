// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/session/run_filter.h"

#include <QCoreApplication>
#include <QRegularExpression>
#include <QStringList>
#include <map>

#include "base/error.h"
#include "base/units.h"
#include "ui/models/common/format.h"
#include "ui/models/session/session_document.h"

namespace vitrine::ui {

namespace {

QString words(const char* text) {
    return QCoreApplication::translate("RunFilter", text);
}

/// Words separated by spaces; quotes keep spaces and disappear.
QStringList splitWords(const QString& text) {
    QStringList out;
    QString word;
    bool quoted = false, any = false;
    for (const QChar c : text) {
        if (c == QLatin1Char('"')) {
            quoted = !quoted;
            any = true;
        } else if (c.isSpace() && !quoted) {
            if (any || !word.isEmpty()) {
                out << word;
            }
            word.clear();
            any = false;
        } else {
            word += c;
        }
    }
    if (any || !word.isEmpty()) {
        out << word;
    }
    return out;
}

bool isTextKey(const QString& key) {
    static const QStringList kKeys = {QStringLiteral("name"),    QStringLiteral("model"),  QStringLiteral("workload"),
                                      QStringLiteral("tag"),     QStringLiteral("tags"),   QStringLiteral("state"),
                                      QStringLiteral("status"),  QStringLiteral("device"), QStringLiteral("backend"),
                                      QStringLiteral("weights"), QStringLiteral("note"),   QStringLiteral("error")};
    return kKeys.contains(key);
}

QString tagsOf(const sessions::RunInfo& run) {
    QStringList tags;
    for (const std::string& tag : run.tags) {
        tags << QString::fromStdString(tag);
    }
    return tags.join(QLatin1Char('\n'));
}

QString textValue(const QString& key, const sessions::RunInfo& run, const RunSummary& facts) {
    if (key == QLatin1String("name")) {
        return QString::fromStdString(run.name);
    }
    if (key == QLatin1String("model")) {
        return facts.model;
    }
    if (key == QLatin1String("workload")) {
        return QString::fromStdString(run.workload);
    }
    if (key.startsWith(QLatin1String("tag"))) {
        return tagsOf(run);
    }
    if (key.startsWith(QLatin1String("stat"))) {
        return statusText(run.status) + QLatin1Char('\n') + textOf(sessions::runStatusName(run.status));
    }
    if (key == QLatin1String("device")) {
        return facts.device;
    }
    if (key == QLatin1String("backend")) {
        return facts.backend;
    }
    if (key == QLatin1String("weights")) {
        return facts.weights;
    }
    return QString::fromStdString(key == QLatin1String("note") ? run.note : run.error);
}

std::optional<double> numberValue(const QString& key, const sessions::RunInfo& run, const RunSummary& facts) {
    if (key == QLatin1String("peak")) {
        return facts.peak ? std::optional(static_cast<double>(*facts.peak)) : std::nullopt;
    }
    if (key == QLatin1String("time")) {
        return runSeconds(run);
    }
    if (key == QLatin1String("tok/s")) {
        return runTokensPerSecond(run);
    }
    if (key == QLatin1String("id")) {
        return static_cast<double>(run.id);
    }
    return runMetric(run, key.toStdString());
}

/// A size, a duration in seconds or a plain number.
std::optional<double> readNumber(const QString& key, const QString& text) {
    bool ok = false;
    const double plain = text.toDouble(&ok);
    if (ok) {
        return plain;
    }
    static const QRegularExpression kDuration(QStringLiteral("^([0-9.]+)(ns|us|µs|ms|s|min|h)$"));
    const auto match = kDuration.match(text);
    if (match.hasMatch()) {
        static const std::map<QString, double> kUnits = {{QStringLiteral("ns"), 1e-9}, {QStringLiteral("us"), 1e-6},
                                                         {QStringLiteral("µs"), 1e-6}, {QStringLiteral("ms"), 1e-3},
                                                         {QStringLiteral("s"), 1},     {QStringLiteral("min"), 60},
                                                         {QStringLiteral("h"), 3600}};
        const double value = match.captured(1).toDouble(&ok);
        return ok ? std::optional(value * kUnits.at(match.captured(2))) : std::nullopt;
    }
    try {
        return static_cast<double>(base::parseBytes(text.toStdString(), key.toStdString()));
    } catch (const base::Error&) {
        return std::nullopt;
    }
}

} // namespace

std::optional<double> runSeconds(const sessions::RunInfo& run) {
    return run.endedMs >= run.startedMs && run.endedMs > 0
               ? std::optional(static_cast<double>(run.endedMs - run.startedMs) / 1e3)
               : std::nullopt;
}

std::optional<double> runTokensPerSecond(const sessions::RunInfo& run) {
    for (const char* name : {"decode_tokens_per_second", "tokens_per_second"}) { // batches have the second alone
        if (const auto rate = runMetric(run, name); rate && *rate > 0) {
            return rate;
        }
    }
    return std::nullopt;
}

RunFilter RunFilter::parse(const QString& text) {
    RunFilter filter;
    for (const QString& word : splitWords(text)) {
        if (!filter.readTerm(word) && filter.error_.isEmpty()) {
            filter.error_ = words("%1: a number is missing, as in peak>40GiB or time<2s").arg(word);
        }
    }
    return filter;
}

bool RunFilter::readTerm(QString word) {
    Term term;
    if (word.size() > 1 && word.startsWith(QLatin1Char('-'))) {
        term.negated = true;
        word.remove(0, 1);
    }
    static const QRegularExpression kCondition(QStringLiteral("^([A-Za-z_/.][A-Za-z0-9_/.]*)(>=|<=|>|<|=|:)(.*)$"));
    const auto match = kCondition.match(word);
    if (!match.hasMatch() || (match.captured(2) == QLatin1String(":") && !isTextKey(match.captured(1).toLower()))) {
        term.text = word;
        terms_.push_back(term);
        return true;
    }
    static const std::map<QString, Operator> kOperators = {
        {QStringLiteral(">"), Operator::Greater}, {QStringLiteral(">="), Operator::GreaterEqual},
        {QStringLiteral("<"), Operator::Less},    {QStringLiteral("<="), Operator::LessEqual},
        {QStringLiteral("="), Operator::Equal},   {QStringLiteral(":"), Operator::Contains}};
    term.key = match.captured(1).toLower();
    term.op = kOperators.at(match.captured(2));
    term.text = match.captured(3);
    if (!isTextKey(term.key)) {
        const auto number = readNumber(term.key, term.text);
        if (!number) {
            return false;
        }
        term.number = *number;
    } else if (term.op != Operator::Contains && term.op != Operator::Equal) {
        return false;
    }
    terms_.push_back(term);
    return true;
}

bool RunFilter::holds(const Term& term, const sessions::RunInfo& run, const RunSummary& facts) {
    if (term.key.isEmpty()) {
        for (const char* key : {"name", "model", "workload", "tag", "state", "device", "note", "error"}) {
            if (textValue(QString::fromLatin1(key), run, facts).contains(term.text, Qt::CaseInsensitive)) {
                return true;
            }
        }
        return false;
    }
    if (isTextKey(term.key)) {
        const QString value = textValue(term.key, run, facts);
        if (term.op == Operator::Contains) {
            return value.contains(term.text, Qt::CaseInsensitive);
        }
        return value.split(QLatin1Char('\n')).contains(term.text, Qt::CaseInsensitive);
    }
    const auto value = numberValue(term.key, run, facts);
    if (!value) {
        return false; // an unknown number is neither more nor less
    }
    switch (term.op) {
    case Operator::Less:
        return *value < term.number;
    case Operator::LessEqual:
        return *value <= term.number;
    case Operator::Greater:
        return *value > term.number;
    case Operator::GreaterEqual:
        return *value >= term.number;
    default:
        return *value == term.number;
    }
}

bool RunFilter::accepts(const sessions::RunInfo& run, const RunSummary& facts) const {
    for (const Term& term : terms_) {
        if (holds(term, run, facts) == term.negated) {
            return false;
        }
    }
    return true;
}

} // namespace vitrine::ui
