// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/queue/queue_rows.h"

#include <QObject>
#include <QStringList>
#include <algorithm>

#include "ui/models/common/format.h"
#include "ui/models/queue/queue_words.h"
#include "ui/models/run/planned_price.h"

namespace vitrine::ui {

namespace {

using engine::QueuedRun;
using engine::QueueState;

QString nameOf(const QueuedRun& run) {
    return QString::fromStdString(run.name).replace(QLatin1String("e-"), QStringLiteral("e−"));
}

/// "loss 1.506". REQUIRES a value.
QString newestText(const QueuedRun& run) {
    return (run.earnsRewards ? QObject::tr("reward %1") : QObject::tr("loss %1")).arg(*run.value, 0, 'f', 3);
}

void addMemory(QueueRow& out, const QueuedRun& run) {
    out.peak = static_cast<double>(run.peak);
    out.planned = run.price ? static_cast<double>(run.price->peak) : 0;
    out.budget = run.price ? static_cast<double>(run.price->budget) : 0;
    const std::uint64_t shown = run.peak > 0 ? run.peak : run.price ? run.price->peak : 0;
    out.peakText = shown > 0 ? gibText(shown) : unknownText();
    out.peakWord = shown == 0 || (run.peak > 0 && engine::hasEnded(run.state) && run.state != QueueState::Failed)
                       ? QString()
                   : run.peak > 0 ? (run.state == QueueState::Failed ? QObject::tr("needed") : QObject::tr("so far"))
                                  : QObject::tr("planned");
    out.over = out.budget > 0 && static_cast<double>(shown) > out.budget;
}

void addUnfit(QueueRow& out, const QueuedRun& run) {
    const engine::QueuePrice& price = *run.price;
    out.sub = QObject::tr("held back, the rest goes on");
    out.progress = QObject::tr("needs %1 of %2, %3 over")
                       .arg(bytesText(price.peak), bytesText(price.budget),
                            bytesText(price.peak > price.budget ? price.peak - price.budget : 0));
    out.progressSub = nearestText(price);
    if (!price.nearestSpec.empty()) {
        out.button = QObject::tr("Use %1").arg(QString::fromStdString(price.nearest));
    }
    out.left = unknownText();
    out.clock = QObject::tr("not scheduled");
}

void addEnded(QueueRow& out, const QueuedRun& run) {
    out.progress = QString::fromStdString(run.reason);
    if (out.progress.isEmpty() && !run.evaluations.empty()) {
        out.progress = (run.earnsRewards ? QObject::tr("evaluation reward %1") : QObject::tr("evaluation loss %1"))
                           .arg(run.evaluations.back().value, 0, 'f', 3);
    } else if (out.progress.isEmpty() && run.value) {
        out.progress = QObject::tr("%1 after %2 steps").arg(newestText(run), countText(run.step));
    }
    out.why = run.state == QueueState::Failed && run.run > 0;
    constexpr double kMs = 1000;
    const bool began = run.startedMs > 0;
    out.left = began ? spanText(static_cast<double>(run.endedMs - run.startedMs) / kMs) : unknownText();
    out.clock = began ? QObject::tr("%1 to %2").arg(clockText(run.startedMs), clockText(run.endedMs)) : unknownText();
}

} // namespace

QueueRowMaker::QueueRowMaker(const engine::RunQueue& queue, std::int64_t nowMs)
    : queue_(queue), nowMs_(nowMs), times_(queue.clock(nowMs)) {}

QueueRow QueueRowMaker::row(const QueuedRun& run) const {
    QueueRow out;
    out.number = run.number;
    out.state = run.state;
    out.run = runText(run.number);
    out.name = nameOf(run);
    out.stateText = textOf(engine::queueStateWords(run.state));
    addMemory(out, run);
    switch (run.state) {
    case QueueState::Running:
        addRunning(out, run);
        break;
    case QueueState::DoesNotFit:
        addUnfit(out, run);
        break;
    case QueueState::Waiting:
    case QueueState::Paused:
        addWaiting(out, run);
        break;
    default:
        addEnded(out, run);
    }
    return out;
}

QueueRow QueueRowMaker::group(const std::vector<const QueuedRun*>& runs) const {
    QueueRow out = row(*runs.front());
    out.kind = QueueRow::Kind::Group;
    out.unfolded = false;
    out.name =
        QObject::tr("and %1 more: sweep %2").arg(runs.size() - 1).arg(QString::fromStdString(runs.front()->sweep));
    out.sub.clear();
    out.progress =
        QObject::tr("%1 runs, from %2 to %3").arg(runs.size()).arg(nameOf(*runs.front()), nameOf(*runs.back()));
    double seconds = 0, planned = 0;
    bool known = true;
    for (const QueuedRun* run : runs) {
        out.members.push_back(run->number);
        const double one = engine::secondsLeft(*run, nowMs_);
        known = known && one > 0;
        seconds += one;
        planned = std::max(planned, run->price ? static_cast<double>(run->price->peak) : 0);
    }
    out.planned = planned;
    out.peakText = planned > 0 ? gibText(static_cast<std::uint64_t>(planned)) : unknownText();
    out.left = known ? spanText(seconds) : unknownText();
    const auto first = timeOf(runs.front()->number), last = timeOf(runs.back()->number);
    out.clock = known && first && last && last->known
                    ? QObject::tr("%1 to %2").arg(clockText(first->beginMs), clockText(last->endMs))
                    : unknownText();
    return out;
}

std::optional<engine::QueueTime> QueueRowMaker::timeOf(std::int64_t number) const {
    const auto found = std::ranges::find(times_, number, &engine::QueueTime::number);
    return found == times_.end() ? std::nullopt : std::optional(*found);
}

void QueueRowMaker::addClock(QueueRow& out, const QueuedRun& run) const {
    const auto time = timeOf(run.number);
    const double left = engine::secondsLeft(run, nowMs_);
    const bool planned = run.price && run.price->seconds > 0;
    out.left = planned ? spanText(left) : unknownText();
    out.clock = time && time->known ? QObject::tr("%1 to %2").arg(clockText(time->beginMs), clockText(time->endMs))
                                    : unknownText();
}

void QueueRowMaker::addRunning(QueueRow& out, const QueuedRun& run) const {
    addClock(out, run);
    const std::vector<const QueuedRun*> all = queue_.runsOf(run.sweep);
    if (!all.empty()) {
        const auto ended = std::ranges::count_if(all, [](const QueuedRun* one) { return hasEnded(one->state); });
        out.sub =
            QObject::tr("sweep %1, %2 of %3").arg(QString::fromStdString(run.sweep)).arg(ended + 1).arg(all.size());
    }
    if (run.steps > 0) {
        out.stateSub = QObject::tr("step %1 of %2").arg(countText(run.step), countText(run.steps));
        out.done = static_cast<double>(run.step) / static_cast<double>(run.steps);
    }
    if (run.tokensPerSecond > 0) {
        out.progressSub = QObject::tr("%1 tok/s").arg(countText(std::llround(run.tokensPerSecond)));
    }
    out.progress = run.steps > 0 ? QString() : QObject::tr("loading");
    for (const engine::QueueEvaluation& one : run.evaluations) {
        out.course.push_back(one.value);
    }
    if (run.value) {
        out.valueText = newestText(run);
    }
    if (run.peak == 0 && run.price && run.price->peak > 0) {
        out.peakWord = QObject::tr("planned");
    }
}

void QueueRowMaker::addWaiting(QueueRow& out, const QueuedRun& run) const {
    addClock(out, run);
    if (run.interrupted) {
        out.progress = QObject::tr("interrupted at step %1; H goes on with it, E ends it").arg(countText(run.step));
    } else if (run.state == QueueState::Paused) {
        out.progress = QObject::tr("held back by you; H lets it wait again");
        out.clock = QObject::tr("not scheduled");
    } else if (!run.price) {
        out.progress = QObject::tr("its memory and time are being planned");
    } else if (!run.price->error.empty()) {
        out.progress = QString::fromStdString(run.price->error);
    } else {
        out.progress = run.sweep.empty() ? QString() : QObject::tr("sweep %1").arg(QString::fromStdString(run.sweep));
    }
}

QueueRow QueueRowMaker::fold(const std::vector<const QueuedRun*>& ended, bool shown) {
    QueueRow out;
    out.kind = QueueRow::Kind::Fold;
    out.state = QueueState::Finished;
    out.unfolded = shown;
    out.name = QObject::tr("Ended");
    QStringList parts;
    for (const QueueState state :
         {QueueState::Finished, QueueState::EndedByRule, QueueState::Failed, QueueState::EndedByUser}) {
        if (const auto count = std::ranges::count(ended, state, [](const QueuedRun* run) { return run->state; })) {
            parts << QStringLiteral("%1 %2").arg(count).arg(textOf(engine::queueStateWords(state)));
        }
    }
    out.progress = QStringLiteral("%1: %2").arg(ended.size()).arg(parts.join(QStringLiteral(", ")));
    return out;
}

} // namespace vitrine::ui
