// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/memory/fit_panel.h"

#include <QGridLayout>
#include <QPainter>
#include <QPushButton>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_values.h"
#include "ui/models/common/format.h"
#include "ui/models/planner/plan_words.h"
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
        changes_ = info != nullptr ? FitChanges(info->specJson, facts.event.budget) : FitChanges{};
        priceNext();
    }
    rebuild();
}

void FitPanel::priceNext() {
    const std::optional<std::string> question = changes_.question();
    ticket_ = context_.runs != nullptr && question ? context_.runs->price(*question) : 0;
}

void FitPanel::takePrice(quint64 ticket, const QString& metrics, const QString& error) {
    if (ticket_ != 0 && ticket > ticket_) { // somebody's later question has replaced this one
        priceNext();
        return;
    }
    if (ticket != ticket_ || ticket_ == 0) {
        return;
    }
    changes_.answer(metrics.toStdString(), error);
    priceNext();
    rebuild();
}

void FitPanel::addHead() {
    if (changes_.all().empty()) {
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

QString FitPanel::stateText(const FitChange& change) const {
    if (!change.priced) {
        return ticket_ == 0 ? tr("not priced") : change.search ? tr("searching") : tr("pricing");
    }
    return fitText(change, facts_.event.budget);
}

void FitPanel::addRow(int row, const FitChange& change, bool primary) {
    auto* words = new QWidget(this);
    auto* lines = new QVBoxLayout(words);
    lines->setContentsMargins(0, 0, 0, 0);
    lines->setSpacing(0);
    auto* title = new TextLabel(change.title, TypeRole::Table, TextColor::Text1, primary, words);
    title->setElide(true);
    auto* why = new TextLabel(change.why, TypeRole::Axis, TextColor::Text3, false, words);
    why->setElide(true);
    lines->addWidget(title);
    lines->addWidget(why);
    grid_->addWidget(new Verdict(change.priced ? std::optional(change.fits) : std::nullopt, this), row, 0);
    grid_->addWidget(words, row, 1);
    const auto add = [&](int column, const QString& text, TextColor color) {
        auto* label = new TextLabel(text, TypeRole::Table, color, false, this);
        label->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
        label->setToolTip(column == 3 ? change.error : QString());
        grid_->addWidget(label, row, column);
    };
    const double before = changes_.all().front().seconds;
    add(2, change.peak > 0 ? bytesText(change.peak) : unknownText(), TextColor::Text1);
    add(3, stateText(change), !change.priced ? TextColor::Text3 : change.fits ? TextColor::Good : TextColor::Bad);
    add(4, stepChangeText(change.seconds, before), TextColor::Text2);
    if (change.priced && change.fits) {
        auto* button = new QPushButton(tr("Try"), this);
        setControlHeight(button, 22);
        setPrimary(button, primary);
        connect(button, &QPushButton::clicked, this,
                [this, experiment = textOf(change.experiment)] { emit tried(experiment); });
        grid_->addWidget(button, row, 5);
    }
}

QString FitPanel::lastText() const {
    const std::uint64_t asked = facts_.event.reserved + facts_.event.requested;
    const bool whole = !changes_.all().empty() && changes_.all().front().peak > 0;
    if (!whole) { // what comes after the failure is not known
        return tr("Up to this request the run needs a budget of %1; what comes after it is not priced.")
            .arg(bytesText(readableBudget(asked)));
    }
    const std::uint64_t needed = std::max(asked, changes_.all().front().peak);
    // A few MiB more would read as the budget that there was.
    const bool close = bytesText(needed) == bytesText(facts_.event.budget);
    QString text = (close ? tr("A budget larger by %1 would also do, for the whole run.")
                          : tr("A budget of %1 would also do, for the whole run."))
                       .arg(bytesText(readableBudget(close ? needed - std::min(needed, facts_.event.budget) : needed)));
    const sessions::RunInfo* info = context_.document->run(run_);
    const nlohmann::json environment = base::parsedObject(info != nullptr ? info->environmentJson : std::string());
    const auto device = environment.find("device");
    if (device != environment.end() && device->is_object()) {
        if (const auto bytes = base::bytesAt(*device, "memory_bytes")) {
            text += QLatin1Char(' ') + tr("This device has %1.").arg(bytesText(*bytes));
        }
    }
    return text;
}

QString FitPanel::asText() const {
    QStringList lines;
    for (const FitChange& change : changes_.shown()) {
        lines << (change.peak > 0 ? tr("%1: peak %2, %3").arg(change.title, bytesText(change.peak), stateText(change))
                                  : tr("%1: %2").arg(change.title, stateText(change)));
    }
    lines << lastText();
    return lines.join(QLatin1Char('\n'));
}

void FitPanel::rebuild() {
    while (QLayoutItem* item = grid_->takeAt(0)) {
        delete item->widget();
        delete item;
    }
    addHead();
    int row = 1;
    for (const FitChange& change : changes_.shown()) {
        addRow(row, change, row == 1 && change.priced && change.fits);
        ++row;
    }
    last_->setText(lastText());
    note_->setText(changes_.all().empty() ? QString()
                   : ticket_ != 0         ? tr("pricing the whole run on the Meta backend")
                                          : tr("the whole run, priced on the Meta backend"));
    emit rowsChanged();
}

} // namespace vitrine::ui
