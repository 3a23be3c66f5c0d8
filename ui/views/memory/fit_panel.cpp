// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/memory/fit_panel.h"

#include <QGridLayout>
#include <QPainter>
#include <QPushButton>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

/// A tick or a cross of 16 px, or nothing while the price is not there.
class Verdict final : public QWidget {
public:
    Verdict(std::optional<bool> fits, QWidget* parent) : QWidget(parent), fits_(fits) { setFixedSize(16, 16); }

protected:
    void paintEvent(QPaintEvent*) override {
        if (fits_) {
            QPainter painter(this);
            painter.drawPixmap(QPointF(0, 0),
                               iconPixmap(*fits_ ? QStringLiteral("check") : QStringLiteral("close"), 14,
                                          *fits_ ? themeTokens().good : themeTokens().bad, deviceRatio(painter)));
        }
    }

private:
    std::optional<bool> fits_;
};

/// "+5.7 %", "−31 %", "0 %"
QString stepTimeText(double ratio) {
    const double change = (ratio - 1) * 100;
    const QString sign = change > 0.05 ? QStringLiteral("+") : change < -0.05 ? QStringLiteral("\u2212") : QString();
    return QStringLiteral("%1%2\u00A0%").arg(sign).arg(std::abs(change), 0, 'f', std::abs(change) < 10 ? 1 : 0);
}

} // namespace

FitPanel::FitPanel(const ViewServices& context, QWidget* parent) : QWidget(parent), context_(context) {
    note_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, this);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    auto* rows = new QWidget(this);
    grid_ = new QGridLayout(rows);
    grid_->setContentsMargins(8, 4, 0, 0);
    grid_->setHorizontalSpacing(12);
    grid_->setVerticalSpacing(6);
    grid_->setColumnStretch(1, 1);
    column->addWidget(rows);
    last_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
    last_->setWordWrap(true);
    // A height that follows the width makes the page's scroll area take preferred heights for needed ones.
    QSizePolicy policy = last_->sizePolicy();
    policy.setHeightForWidth(false);
    last_->setSizePolicy(policy);
    last_->setContentsMargins(8, 8, 0, 0);
    column->addWidget(last_);
    column->addStretch(1);
    if (context_.runs != nullptr) {
        connect(context_.runs, &RunController::priced, this, &FitPanel::takePrice);
    }
}

void FitPanel::setFailure(sessions::RunId run, const OomSummary& facts) {
    facts_ = facts;
    const bool same = run == run_ && facts.event.time == shownTime_;
    run_ = run;
    shownTime_ = facts.event.time;
    if (!same) {
        const sessions::RunInfo* info = context_.document->run(run);
        changes_ = info != nullptr ? fitChanges(info->specJson) : std::vector<FitChange>{};
        ticket_ = 0;
        pricing_ = 0;
        priceNext();
    }
    rebuild();
}

void FitPanel::priceNext() {
    ticket_ = 0;
    while (pricing_ < changes_.size() && changes_[pricing_].priced) {
        ++pricing_;
    }
    if (context_.runs != nullptr && pricing_ < changes_.size()) {
        ticket_ = context_.runs->price(changes_[pricing_].experiment);
    }
}

void FitPanel::takePrice(quint64 ticket, const QString& metrics, const QString& error) {
    if (ticket_ != 0 && ticket > ticket_) { // somebody's later question has replaced this one
        priceNext();
        return;
    }
    if (ticket != ticket_ || ticket_ == 0 || pricing_ >= changes_.size()) {
        return;
    }
    setPrice(changes_[pricing_], metrics.toStdString(), error);
    priceNext();
    rebuild();
}

void FitPanel::addHead() {
    if (changes_.empty()) {
        return;
    }
    const QString heads[] = {{}, tr("Change"), tr("Peak"), tr("Budget"), tr("Step time")};
    for (int column = 1; column < 5; ++column) {
        auto* head = new TextLabel(heads[column], TypeRole::Axis, TextColor::Text3, false, this);
        head->setFixedHeight(16);
        head->setAlignment((column == 1 ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
        grid_->addWidget(head, 0, column);
    }
}

void FitPanel::rebuild() {
    while (QLayoutItem* item = grid_->takeAt(0)) {
        delete item->widget();
        delete item;
    }
    addHead();
    int row = 1;
    bool primary = true;
    const double before = changes_.empty() ? 0 : changes_.front().seconds;
    for (const FitChange& change : changes_) {
        if (change.title.isEmpty()) {
            continue; // the experiment as it was
        }
        const bool known = change.priced && change.peak > 0;
        const bool fits = known && change.error.isEmpty() && change.peak <= facts_.event.budget;
        auto* words = new QWidget(this);
        auto* lines = new QVBoxLayout(words);
        lines->setContentsMargins(0, 0, 0, 0);
        lines->setSpacing(0);
        auto* title = new TextLabel(change.title, TypeRole::Table, TextColor::Text1, fits && primary, words);
        title->setElide(true);
        auto* why = new TextLabel(change.why, TypeRole::Axis, TextColor::Text3, false, words);
        why->setElide(true);
        lines->addWidget(title);
        lines->addWidget(why);
        grid_->addWidget(new Verdict(change.priced ? std::optional(fits) : std::nullopt, this), row, 0);
        grid_->addWidget(words, row, 1);
        QString state = tr("not priced");
        TextColor color = TextColor::Text3;
        if (known) {
            const std::uint64_t gap =
                fits ? facts_.event.budget - change.peak : change.peak - std::min(change.peak, facts_.event.budget);
            state = fits ? tr("%1 spare").arg(bytesText(gap)) : tr("%1 over").arg(bytesText(gap));
            color = fits ? TextColor::Good : TextColor::Bad;
        } else if (change.priced) {
            state = tr("does not fit");
            color = TextColor::Bad;
        } else if (ticket_ != 0) {
            state = tr("pricing");
        }
        auto* peak = new TextLabel(known ? bytesText(change.peak) : unknownText(), TypeRole::Table, TextColor::Text1,
                                   false, this);
        peak->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
        auto* verdict = new TextLabel(state, TypeRole::Table, color, false, this);
        verdict->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
        verdict->setToolTip(change.error);
        grid_->addWidget(peak, row, 2);
        grid_->addWidget(verdict, row, 3);
        const bool timed = known && before > 0 && change.seconds > 0;
        auto* time = new TextLabel(timed ? stepTimeText(change.seconds / before) : unknownText(), TypeRole::Table,
                                   TextColor::Text2, false, this);
        time->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
        grid_->addWidget(time, row, 4);
        if (fits) {
            auto* button = new QPushButton(tr("Try"), this);
            setControlHeight(button, 22);
            setPrimary(button, primary);
            primary = false;
            connect(button, &QPushButton::clicked, this,
                    [this, experiment = textOf(change.experiment)] { emit tried(experiment); });
            grid_->addWidget(button, row, 5);
        }
        ++row;
    }
    const std::uint64_t needed = facts_.event.reserved + facts_.event.requested;
    // A few MiB more would read as the budget that there was.
    const bool close = bytesText(needed) == bytesText(facts_.event.budget);
    const QString budget = close ? tr("A budget larger by %1").arg(bytesText(needed - facts_.event.budget))
                                 : tr("A budget of %1").arg(bytesText(needed));
    last_->setText(changes_.empty() ? tr("%1 would have done for this request.").arg(budget)
                                    : tr("%1 would also do for this request.").arg(budget));
    note_->setText(changes_.empty() ? QString() : tr("priced on the Meta backend"));
}

} // namespace vitrine::ui
