// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/queue/queue_words.h"

#include <QCoreApplication>
#include <QDateTime>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

using engine::QueuedRun;
using engine::QueueState;

QString words(const char* text) {
    return QCoreApplication::translate("QueueWords", text);
}

QString strong(const QString& text) {
    return QStringLiteral("<b>%1</b>").arg(text.toHtmlEscaped());
}

std::size_t countOf(const engine::RunQueue& queue, QueueState state) {
    return static_cast<std::size_t>(std::ranges::count(queue.runs(), state, &QueuedRun::state));
}

QString namedValue(const std::pair<std::string, std::string>& value) {
    return QString::fromStdString(value.first).replace(QLatin1Char('_'), QLatin1Char(' ')) + QLatin1Char(' ') +
           numberText(value.second);
}

QString valuesText(const engine::SweepValues& values) {
    QString out;
    for (std::size_t i = 0; i < values.size(); ++i) {
        out += (i == 0 ? QString() : i == 1 ? words(" with ") : QStringLiteral(", ")) + namedValue(values[i]);
    }
    return out;
}

QString valueText(double value) {
    return QString::number(value, 'f', 3);
}

} // namespace

QString spanText(double seconds) {
    constexpr std::int64_t kMinute = 60, kHour = 3600;
    const std::int64_t all = std::llround(seconds);
    const auto two = [](std::int64_t value) { return QStringLiteral("%1").arg(value, 2, 10, QLatin1Char('0')); };
    if (all >= kHour) {
        return words("%1 h %2 min").arg(all / kHour).arg(two(all % kHour / kMinute));
    }
    return all >= kMinute ? words("%1 min %2 s").arg(all / kMinute).arg(two(all % kMinute)) : words("%1 s").arg(all);
}

QString clockText(std::int64_t unixMs) {
    return QDateTime::fromMSecsSinceEpoch(unixMs).toString(QStringLiteral("HH:mm"));
}

QString numberText(const std::string& v) {
    return QString::fromStdString(v).replace(QLatin1String("e-"), QStringLiteral("e−"));
}

QString behindText(double behind, bool rewards) {
    return behind <= 0 ? QStringLiteral("=")
                       : (rewards ? QStringLiteral("▼ −%1") : QStringLiteral("▲ +%1")).arg(valueText(behind));
}

QString runText(std::int64_t number) {
    return QStringLiteral("#%1").arg(number);
}

std::string shownSweep(const engine::RunQueue& queue) {
    const QueuedRun* running = queue.running();
    if (running != nullptr && !running->sweep.empty()) {
        return running->sweep;
    }
    const auto& runs = queue.runs();
    const auto newest =
        std::find_if(runs.rbegin(), runs.rend(), [](const QueuedRun& run) { return !run.sweep.empty(); });
    return newest == runs.rend() ? std::string() : newest->sweep;
}

QString queueSentence(const engine::RunQueue& queue) {
    const engine::SweepTable table = engine::sweepTable(queue, shownSweep(queue));
    const QueuedRun* running = queue.running();
    if (const engine::SweepRow* best = table.bestRow()) {
        QString out =
            words("%1 is best%2: %3 %4 after %5 steps")
                .arg(strong(valuesText(best->values)), table.ended < table.rows.size() ? words(" so far") : QString(),
                     words(std::string(table.measure()).c_str()), strong(valueText(*best->value)),
                     countText(best->valueStep));
        if (const auto next = table.toTheNext()) {
            const QString away = table.rewards ? words(", %1 above the next") : words(", %1 below the next");
            const QString equal = table.rewards ? words(", as high as the next") : words(", as low as the next");
            out += *next > 0 ? away.arg(strong(valueText(*next))) : equal;
        }
        return out + QLatin1Char('.');
    }
    if (running != nullptr && running->steps > 0) {
        return (table.rows.empty() ? words("%1 is at step %2 of %3.")
                                   : words("No run has ended yet; %1 is at step %2 of %3."))
            .arg(strong(runText(running->number)), countText(running->step), countText(running->steps));
    }
    if (running != nullptr) {
        return words("%1 runs: %2.")
            .arg(strong(runText(running->number)), QString::fromStdString(running->name).toHtmlEscaped());
    }
    const std::size_t waiting = countOf(queue, QueueState::Waiting);
    if (waiting > 0) {
        return waiting == 1 ? words("1 run waits.") : words("%1 runs wait.").arg(waiting);
    }
    return words("Nothing waits.");
}

QString queueFacts(const engine::RunQueue& queue, std::int64_t nowMs) {
    QStringList out;
    const engine::SweepTable table = engine::sweepTable(queue, shownSweep(queue));
    if (!table.rows.empty()) {
        out << words("%1 of %2 runs of the sweep are done.").arg(table.done).arg(table.rows.size());
    }
    QStringList parts;
    if (const QueuedRun* running = queue.running()) {
        parts << words("%1 runs").arg(runText(running->number));
    }
    const std::size_t waiting = countOf(queue, QueueState::Waiting), unfit = countOf(queue, QueueState::DoesNotFit),
                      paused = countOf(queue, QueueState::Paused), failed = countOf(queue, QueueState::Failed);
    if (waiting > 0) {
        parts << (waiting == 1 ? words("1 run waits") : words("%1 runs wait").arg(waiting));
    }
    if (unfit > 0) {
        parts << (unfit == 1 ? words("1 does not fit and is held back")
                             : words("%1 do not fit and are held back").arg(unfit));
    }
    if (paused > 0) {
        parts << words("%1 paused").arg(paused);
    }
    if (failed > 0) {
        parts << words("%1 failed").arg(failed);
    }
    if (!parts.empty()) {
        out << parts.join(QStringLiteral(", ")) + QLatin1Char('.');
    }
    const std::vector<engine::QueueTime> times = queue.clock(nowMs);
    if (queue.paused()) {
        const QString why = QString::fromStdString(queue.pauseReason());
        out << (why.isEmpty() ? words("The queue is paused.") : words("The queue is paused: %1.").arg(why));
    } else if (!times.empty() && times.back().known) {
        out << words("The queue ends at %1 at the latest, in %2.")
                   .arg(clockText(times.back().endMs),
                        spanText(static_cast<double>(times.back().endMs - nowMs) / 1000));
    }
    return out.join(QLatin1Char(' '));
}

QString queueCounts(const engine::RunQueue& queue) {
    return words("%1 running, %2 waiting, %3 held back")
        .arg(countOf(queue, QueueState::Running))
        .arg(countOf(queue, QueueState::Waiting))
        .arg(countOf(queue, QueueState::DoesNotFit) + countOf(queue, QueueState::Paused));
}

FlatTreePtr sweepTree(const engine::RunQueue& queue, const std::string& sweep) {
    const engine::SweepTable table = engine::sweepTable(queue, sweep);
    auto out = std::make_shared<FlatTree>();
    out->columns = {{words("Run"), true}};
    if (!table.rows.empty()) {
        for (const auto& [key, value] : table.rows.front().values) {
            out->columns.push_back({QString::fromStdString(key).replace(QLatin1Char('_'), QLatin1Char(' ')), true});
        }
    }
    out->columns.insert(out->columns.end(), {{table.rewards ? words("Reward") : words("Loss"), true},
                                             {table.rewards ? words("below best") : words("above best"), true},
                                             {words("Steps"), true},
                                             {words("State"), false}});
    for (const engine::SweepRow& row : table.rows) {
        FlatNode node;
        node.key = static_cast<quint64>(row.number);
        node.emphasis = row.best;
        node.cells.emplace_back(runText(row.number), QVariant::fromValue<qint64>(row.number));
        for (const auto& [key, value] : row.values) {
            node.cells.emplace_back(numberText(value), QVariant(QString::fromStdString(value).toDouble()),
                                    QString::fromStdString(value));
        }
        node.cells.emplace_back(row.value ? valueText(*row.value) : unknownText(),
                                QVariant(row.value.value_or(HUGE_VAL)),
                                row.value ? QString::number(*row.value, 'g', 17) : QString());
        node.cells.back().muted = !engine::isDone(row.state);
        node.cells.emplace_back(row.behindBest ? behindText(*row.behindBest, table.rewards) : unknownText(),
                                QVariant(row.behindBest.value_or(HUGE_VAL)),
                                row.behindBest ? QString::number(*row.behindBest, 'g', 17) : QString());
        if (row.behindBest) {
            node.cells.back().delta = *row.behindBest > 0 ? 1 : 0;
        }
        node.cells.emplace_back(countText(row.steps), QVariant::fromValue<qint64>(row.steps));
        node.cells.emplace_back(row.best ? words("best") : textOf(engine::queueStateWords(row.state)));
        node.cells.back().muted = !row.best;
        out->nodes.push_back(std::move(node));
    }
    return out;
}

FlatTreePtr queueTree(const engine::RunQueue& queue, std::int64_t nowMs) {
    auto out = std::make_shared<FlatTree>();
    out->columns = {{words("Run"), true},           {words("Name"), false},          {words("Sweep"), false},
                    {words("State"), false},        {words("Peak"), true},           {words("Planned peak"), true},
                    {words("Left or taken"), true}, {words("Loss or reward"), true}, {words("Reason"), false}};
    for (const QueuedRun& run : queue.runs()) {
        FlatNode node;
        node.key = static_cast<quint64>(run.number);
        const bool ended = engine::hasEnded(run.state);
        const double seconds =
            ended ? static_cast<double>(run.endedMs - run.startedMs) / 1000 : engine::secondsLeft(run, nowMs);
        const auto bytes = [](std::uint64_t value) {
            return value > 0 ? FlatCell(bytesText(value), QVariant::fromValue<quint64>(value), QString::number(value))
                             : FlatCell(unknownText());
        };
        const QString value = run.evaluations.empty() ? unknownText() : valueText(run.evaluations.back().value);
        node.cells = {FlatCell(runText(run.number), QVariant::fromValue<qint64>(run.number)),
                      FlatCell(QString::fromStdString(run.name)),
                      FlatCell(QString::fromStdString(run.sweep)),
                      FlatCell(textOf(engine::queueStateWords(run.state))),
                      bytes(run.peak),
                      bytes(run.price ? run.price->peak : 0),
                      FlatCell(seconds > 0 ? spanText(seconds) : unknownText(), QVariant(seconds)),
                      FlatCell(value),
                      FlatCell(QString::fromStdString(run.reason))};
        out->nodes.push_back(std::move(node));
    }
    return out;
}

} // namespace vitrine::ui
