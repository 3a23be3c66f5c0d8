// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/queue/queue_model.h"

#include <QMimeData>
#include <algorithm>
#include <cmath>
#include <optional>

#include "ui/models/common/format.h"
#include "ui/models/queue/queue_words.h"

namespace vitrine::ui {

namespace {

using engine::QueuedRun;
using engine::QueueState;

const QString kMimeType = QStringLiteral("application/x-vitrine-queued-run");

QString nameOf(const QueuedRun& run) {
    return QString::fromStdString(run.name).replace(QLatin1String("e-"), QStringLiteral("e−"));
}

/// The newest ended runs stand above; a failed one stays in sight.
constexpr std::size_t kEndedShown = 200;

/// Makes rows out of runs, with the clock that the queue gives.
class RowMaker {
public:
    RowMaker(const engine::RunQueue& queue, std::int64_t nowMs)
        : queue_(queue), nowMs_(nowMs), times_(queue.clock(nowMs)) {}

    QueueRow row(const QueuedRun& run) const {
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

    QueueRow group(const std::vector<const QueuedRun*>& runs) const {
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

private:
    std::optional<engine::QueueTime> timeOf(std::int64_t number) const {
        const auto found = std::ranges::find(times_, number, &engine::QueueTime::number);
        return found == times_.end() ? std::nullopt : std::optional(*found);
    }

    static void addMemory(QueueRow& out, const QueuedRun& run) {
        out.peak = static_cast<double>(run.peak);
        out.planned = run.price ? static_cast<double>(run.price->peak) : 0;
        out.budget = run.price ? static_cast<double>(run.price->budget) : 0;
        const std::uint64_t shown = run.peak > 0 ? run.peak : run.price ? run.price->peak : 0;
        out.peakText = shown > 0 ? gibText(shown) : unknownText();
        out.peakWord =
            shown == 0 || (run.peak > 0 && engine::hasEnded(run.state) && run.state != QueueState::Failed) ? QString()
            : run.peak > 0 ? (run.state == QueueState::Failed ? QObject::tr("needed") : QObject::tr("so far"))
                           : QObject::tr("planned");
        out.over = out.budget > 0 && static_cast<double>(shown) > out.budget;
    }

    void addClock(QueueRow& out, const QueuedRun& run) const {
        const auto time = timeOf(run.number);
        const double left = engine::secondsLeft(run, nowMs_);
        const bool planned = run.price && run.price->seconds > 0;
        out.left = planned ? spanText(left) : unknownText();
        out.clock = time && time->known ? QObject::tr("%1 to %2").arg(clockText(time->beginMs), clockText(time->endMs))
                                        : unknownText();
    }

    void addRunning(QueueRow& out, const QueuedRun& run) const {
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
            out.losses.push_back(one.loss);
        }
        if (run.loss) {
            out.lossText = QObject::tr("loss %1").arg(*run.loss, 0, 'f', 3);
        }
        if (run.peak == 0 && run.price && run.price->peak > 0) {
            out.peakWord = QObject::tr("planned");
        }
    }

    void addWaiting(QueueRow& out, const QueuedRun& run) const {
        addClock(out, run);
        if (run.interrupted) {
            out.progress =
                QObject::tr("interrupted at step %1; H lets it wait again, E ends it").arg(countText(run.step));
        } else if (run.state == QueueState::Paused) {
            out.progress = QObject::tr("held back by you; H lets it wait again");
            out.clock = QObject::tr("not scheduled");
        } else if (!run.price) {
            out.progress = QObject::tr("its memory and time are being planned");
        } else if (!run.price->error.empty()) {
            out.progress = QString::fromStdString(run.price->error);
        } else {
            out.progress =
                run.sweep.empty() ? QString() : QObject::tr("sweep %1").arg(QString::fromStdString(run.sweep));
        }
    }

    static void addUnfit(QueueRow& out, const QueuedRun& run) {
        const engine::QueuePrice& price = *run.price;
        out.sub = QObject::tr("held back, the rest goes on");
        out.progress = QObject::tr("needs %1 of %2, %3 over")
                           .arg(bytesText(price.peak), bytesText(price.budget),
                                bytesText(price.peak > price.budget ? price.peak - price.budget : 0));
        const QString nearest = QString::fromStdString(price.nearest);
        if (price.nearestSpec.empty()) {
            out.progressSub = nearest.isEmpty() ? QObject::tr("no change or pair fits") : nearest;
        } else {
            out.progressSub = QObject::tr("nearest change: %1, %2").arg(nearest, bytesText(price.nearestPeak));
            if (price.nearestTime > 0) {
                const double percent = (price.nearestTime - 1) * 100;
                out.progressSub += QObject::tr(", %1%2 % time")
                                       .arg(percent < 0 ? QStringLiteral("−") : QStringLiteral("+"))
                                       .arg(std::abs(percent), 0, 'f', 1);
            }
            out.button = QObject::tr("Use %1").arg(nearest);
        }
        out.left = unknownText();
        out.clock = QObject::tr("not scheduled");
    }

    static void addEnded(QueueRow& out, const QueuedRun& run) {
        out.progress = QString::fromStdString(run.reason);
        if (out.progress.isEmpty() && !run.evaluations.empty()) {
            out.progress = QObject::tr("evaluation loss %1").arg(run.evaluations.back().loss, 0, 'f', 3);
        } else if (out.progress.isEmpty() && run.loss) {
            out.progress = QObject::tr("loss %1 after %2 steps").arg(*run.loss, 0, 'f', 3).arg(countText(run.step));
        }
        out.why = run.state == QueueState::Failed && run.run > 0;
        constexpr double kMs = 1000;
        const bool began = run.startedMs > 0;
        out.left = began ? spanText(static_cast<double>(run.endedMs - run.startedMs) / kMs) : unknownText();
        out.clock =
            began ? QObject::tr("%1 to %2").arg(clockText(run.startedMs), clockText(run.endedMs)) : unknownText();
    }

    const engine::RunQueue& queue_;
    std::int64_t nowMs_;
    std::vector<engine::QueueTime> times_;
};

QueueRow foldRow(const std::vector<const QueuedRun*>& ended, bool shown) {
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

} // namespace

QueueModel::QueueModel(QObject* parent) : QAbstractTableModel(parent) {}

std::vector<QueueRow> QueueModel::makeRows(const engine::RunQueue& queue, std::int64_t nowMs) const {
    const RowMaker maker(queue, nowMs);
    std::vector<QueueRow> out;
    std::vector<const QueuedRun*> waiting, held, ended;
    for (const QueuedRun& run : queue.runs()) {
        (engine::hasEnded(run.state) ? ended : run.state == QueueState::DoesNotFit ? held : waiting).push_back(&run);
    }
    std::ranges::stable_partition(waiting, [](const QueuedRun* run) { return run->state == QueueState::Running; });
    for (std::size_t i = 0; i < waiting.size();) {
        std::size_t end = i + 1;
        const QueuedRun& first = *waiting[i];
        while (first.state == QueueState::Waiting && !first.sweep.empty() && end < waiting.size() &&
               waiting[end]->sweep == first.sweep && waiting[end]->state == QueueState::Waiting) {
            ++end;
        }
        const bool folded = end - i > 1 && !unfolded_.contains(first.number);
        if (folded) {
            out.push_back(maker.group({waiting.begin() + static_cast<std::ptrdiff_t>(i),
                                       waiting.begin() + static_cast<std::ptrdiff_t>(end)}));
        }
        for (; i < end; ++i) {
            if (!folded) {
                out.push_back(maker.row(*waiting[i]));
            }
        }
    }
    for (const QueuedRun* run : held) {
        out.push_back(maker.row(*run));
    }
    if (!ended.empty()) {
        std::ranges::stable_sort(ended, std::greater(), [](const QueuedRun* run) { return run->endedMs; });
        out.push_back(foldRow(ended, endedShown_));
        if (endedShown_) {
            ended.resize(std::min(ended.size(), kEndedShown));
            for (const QueuedRun* run : ended) {
                out.push_back(maker.row(*run));
            }
        }
    }
    return out;
}

void QueueModel::setQueue(const engine::RunQueue& queue, std::int64_t nowMs) {
    queue_ = queue;
    nowMs_ = nowMs;
    open_.clear();
    for (const QueuedRun& run : queue.runs()) {
        if (!engine::hasEnded(run.state) && run.state != QueueState::Running) {
            open_.push_back(run.number);
        }
    }
    std::vector<QueueRow> rows = makeRows(queue, nowMs);
    const auto same = [](const QueueRow& a, const QueueRow& b) {
        return a.kind == b.kind && a.number == b.number && a.state == b.state;
    };
    if (std::ranges::equal(rows, rows_, same)) { // the selection and the place stay
        rows_ = std::move(rows);
        if (!rows_.empty()) {
            emit dataChanged(index(0, 0), index(rowCount() - 1, kColumns - 1));
        }
        return;
    }
    beginResetModel();
    rows_ = std::move(rows);
    endResetModel();
}

int QueueModel::rowOf(std::int64_t number) const {
    const auto found = std::ranges::find_if(rows_, [&](const QueueRow& row) {
        return row.kind != QueueRow::Kind::Fold &&
               (row.number == number || std::ranges::find(row.members, number) != row.members.end());
    });
    return found == rows_.end() ? -1 : static_cast<int>(found - rows_.begin());
}

bool QueueModel::toggle(int row) {
    const QueueRow one = this->row(row);
    if (one.kind == QueueRow::Kind::Fold) {
        endedShown_ = !endedShown_;
    } else if (one.kind == QueueRow::Kind::Group) {
        unfolded_.insert(one.number);
    } else if (unfolded_.contains(one.number)) {
        unfolded_.erase(one.number);
    } else {
        return false;
    }
    setQueue(engine::RunQueue(queue_), nowMs_);
    return true;
}

QString QueueModel::spoken(int row) const {
    const QueueRow& one = this->row(row);
    if (one.kind == QueueRow::Kind::Fold) {
        return tr("%1. %2.").arg(one.name, one.progress);
    }
    QStringList parts{tr("Number %1, %2, %3").arg(one.number).arg(one.name, one.stateText)};
    for (const QString& text : {one.stateSub, one.progress, one.progressSub, one.lossText}) {
        if (!text.isEmpty()) {
            parts << text;
        }
    }
    if (one.peakText != unknownText()) {
        parts << tr("Peak %1 of %2 gibibytes %3")
                     .arg(one.peakText, gibText(static_cast<std::uint64_t>(one.budget)), one.peakWord);
    }
    return parts.join(QStringLiteral(". "));
}

std::size_t QueueModel::placeOf(std::int64_t number) const {
    return static_cast<std::size_t>(std::ranges::find(open_, number) - open_.begin());
}

std::size_t QueueModel::placeBefore(int row) const {
    for (; row < rowCount(); ++row) {
        const QueueRow& one = this->row(row);
        const std::size_t place = placeOf(one.number);
        if (one.kind != QueueRow::Kind::Fold && place < open_.size()) {
            return place;
        }
    }
    return open_.size();
}

int QueueModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int QueueModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : kColumns;
}

QVariant QueueModel::data(const QModelIndex& index, int role) const {
    const QueueRow& one = row(index.row());
    if (role == Qt::AccessibleTextRole) {
        return spoken(index.row());
    }
    if (role == Qt::ToolTipRole) {
        return index.column() == Progress && !one.progress.isEmpty() ? QVariant(one.progress) : QVariant();
    }
    if (role != Qt::DisplayRole) {
        return {};
    }
    const std::array<QString, kColumns> texts = {one.run,      one.name, one.stateText, one.progress,
                                                 one.peakText, one.left, one.clock};
    return texts[static_cast<std::size_t>(index.column())];
}

QVariant QueueModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole) {
        return {};
    }
    const auto budget = std::ranges::find_if(rows_, [](const QueueRow& row) { return row.budget > 0; });
    const QString peak = budget == rows_.end()
                             ? tr("Peak, GiB")
                             : tr("Peak, GiB, of %1").arg(gibText(static_cast<std::uint64_t>(budget->budget)));
    const std::array<QString, kColumns> texts = {tr("Run"), tr("Name"), tr("State"), tr("Progress, or what holds it"),
                                                 peak,      tr("Left"), tr("Clock")};
    return texts[static_cast<std::size_t>(section)];
}

Qt::ItemFlags QueueModel::flags(const QModelIndex& index) const {
    if (!index.isValid()) {
        return Qt::ItemIsDropEnabled;
    }
    const bool open = placeOf(row(index.row()).number) < open_.size();
    return Qt::ItemIsEnabled | Qt::ItemIsSelectable | (open ? Qt::ItemIsDragEnabled : Qt::NoItemFlags);
}

QStringList QueueModel::mimeTypes() const {
    return {kMimeType};
}

QMimeData* QueueModel::mimeData(const QModelIndexList& indexes) const {
    auto* out = new QMimeData;
    if (!indexes.empty()) {
        out->setData(kMimeType, QByteArray::number(static_cast<qlonglong>(row(indexes.front().row()).number)));
    }
    return out;
}

bool QueueModel::dropMimeData(const QMimeData* data, Qt::DropAction, int row, int, const QModelIndex& parent) {
    if (!data->hasFormat(kMimeType)) {
        return false;
    }
    const qint64 number = data->data(kMimeType).toLongLong();
    const std::size_t from = placeOf(number);
    std::size_t to = placeBefore(row >= 0 ? row : parent.isValid() ? parent.row() : rowCount());
    to -= to > from ? 1 : 0; // its own place is free by then
    emit moveWanted(number, static_cast<int>(to));
    return false; // the queue moves it, not the view
}

} // namespace vitrine::ui
