// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/shell/status_row.h"

#include <QPainter>
#include <QProgressBar>
#include <QPushButton>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/session/run_summary.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

StatusRow::StatusRow(SessionDocument* document, QWidget* parent) : QStatusBar(parent), document_(document) {
    setSizeGripEnabled(false);
    setFixedHeight(24);
    setContentsMargins(10, 1, 6, 0);
    readout_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
    readout_->setElide(true);
    readout_->setAccessibleName(tr("Readout"));
    addWidget(readout_, 1);
    progressText_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
    progressBar_ = new QProgressBar(this);
    progressBar_->setFixedSize(160, 6);
    progressBar_->setTextVisible(false);
    progressStop_ = new QPushButton(tr("Stop (Esc)"), this);
    setControlHeight(progressStop_, 18);
    priced_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
    events_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
    losses_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
    saved_ = new TextLabel({}, TypeRole::Table, TextColor::Good, false, this);
    for (TextLabel* label : {progressText_, priced_, events_, losses_, saved_}) {
        label->setContentsMargins(6, 0, 6, 0);
    }
    for (QWidget* part :
         {static_cast<QWidget*>(progressText_), static_cast<QWidget*>(progressBar_),
          static_cast<QWidget*>(progressStop_), static_cast<QWidget*>(priced_), static_cast<QWidget*>(events_),
          static_cast<QWidget*>(losses_), static_cast<QWidget*>(saved_)}) {
        addPermanentWidget(part);
    }
    progressText_->hide();
    progressBar_->hide();
    progressStop_->hide();
    connect(progressStop_, &QPushButton::clicked, document_, &SessionDocument::stopReading);
    connect(document_, &SessionDocument::progress, this, &StatusRow::showProgress);
    connect(document_, &SessionDocument::keepingChanged, this, &StatusRow::refresh);
}

bool StatusRow::reading() const {
    return progressStop_->isVisible();
}

void StatusRow::showProgress(const QString& what, quint64 done, quint64 total) {
    const bool on = !what.isEmpty();
    progressText_->setVisible(on);
    progressStop_->setVisible(on);
    progressBar_->setVisible(on && total > 0);
    progressText_->setText(
        total > 0
            ? tr("%1, %2 of %3").arg(what, countText(static_cast<qint64>(done)), countText(static_cast<qint64>(total)))
            : tr("%1, %2 chunks").arg(what, countText(static_cast<qint64>(done))));
    progressBar_->setRange(0, 1000);
    progressBar_->setValue(total > 0 ? static_cast<int>(1000.0 * static_cast<double>(done) / static_cast<double>(total))
                                     : 0);
}

void StatusRow::refresh() {
    const sessions::RunInfo* run = document_->run(document_->runA());
    if (run == nullptr) {
        events_->clear();
        losses_->clear();
        saved_->clear();
        return;
    }
    const TimelineState& state = document_->timeline(run->id);
    const qint64 events = state.timeline ? static_cast<qint64>(state.timeline->memory().events()) : 0;
    events_->setText(!state.timeline ? QString()
                     : events == 1   ? tr("1 event")
                                     : tr("%1 events").arg(countText(events)));
    QString losses = run->lostRecords == 0
                         ? tr("No records lost")
                         : tr("%1 records lost").arg(countText(static_cast<qint64>(run->lostRecords)));
    const auto dropped = runMetric(*run, "dropped_parts").value_or(0);
    if (dropped > 0) {
        losses = dropped == 1 ? tr("%1, 1 older part deleted").arg(losses)
                              : tr("%1, %2 older parts deleted").arg(losses, countText(static_cast<qint64>(dropped)));
    }
    losses_->setText(losses);
    losses_->setColor(run->lostRecords == 0 ? TextColor::Text2 : TextColor::Warn);
    losses_->setToolTip(run->lostRecords == 0
                            ? QString()
                            : tr("Records of allocations, scopes and counters came faster than they could be kept. "
                                 "Where they are missing the timeline shows a gap, and sums over it are too small."));
    const SessionKeeping keeping = document_->keeping();
    const bool live = run->status == sessions::RunStatus::Running && !keeping.endangered();
    saved_->setText(live ? tr("Recording") : keepingText(keeping));
    saved_->setToolTip(keepingSentence(keeping, document_->path()));
    saved_->setColor(keeping.endangered()                            ? TextColor::Bad
                     : live                                          ? TextColor::Accent
                     : keeping.state == SessionKeeping::State::Saved ? TextColor::Good
                                                                     : TextColor::Text2);
}

void StatusRow::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), themeTokens().window);
    hairline(painter, 0, width(), 0, themeTokens().line1);
}

} // namespace vitrine::ui
