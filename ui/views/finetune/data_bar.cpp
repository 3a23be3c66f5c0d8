// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/finetune/data_bar.h"

#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <exception>

#include "ui/models/common/format.h"
#include "ui/models/finetune/training_text.h"
#include "ui/models/run/planned_price.h"
#include "ui/models/run/run_price.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/plots/budget_bar.h"

namespace vitrine::ui {

namespace {

constexpr int kDataBarHeight = 64, kPriceDelayMs = 150, kVerdictWidth = 288;
constexpr std::size_t kNamedShares = 3;

} // namespace

DataBar::DataBar(RunController* runs, std::function<std::string()> experiment, QWidget* parent)
    : Surface(Fill::Panel, Top, parent), runs_(runs), experiment_(std::move(experiment)), searching_(this) {
    setFixedHeight(kDataBarHeight);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(12, 8, 12, 8);
    row->setSpacing(0);
    const auto pair = [this](TextLabel* first, TextLabel* second) {
        auto* column = new QVBoxLayout;
        column->setSpacing(2);
        column->addWidget(first);
        column->addWidget(second);
        return column;
    };
    auto* left = new QWidget(this);
    left->setFixedWidth(kVerdictWidth);
    mark_ = new TextLabel({}, TypeRole::Title, TextColor::Good, true, left);
    verdict_ = new TextLabel({}, TypeRole::Title, TextColor::Text1, true, left);
    verdict_->setElide(true);
    spare_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, left);
    spare_->setElide(true);
    auto* column = new QVBoxLayout(left);
    column->setContentsMargins(0, 0, 12, 0);
    column->setSpacing(2);
    auto* head = new QHBoxLayout;
    head->setSpacing(8);
    head->addWidget(mark_);
    head->addWidget(verdict_, 1);
    column->addLayout(head);
    try_ = new QPushButton(tr("Try"), left);
    try_->setToolTip(tr("Puts the nearest change into the form; nothing starts"));
    setControlHeight(try_, 20);
    try_->hide();
    auto* second = new QHBoxLayout;
    second->setSpacing(8);
    second->addWidget(spare_, 1);
    second->addWidget(try_);
    column->addLayout(second);
    row->addWidget(left);
    auto* middle = new QVBoxLayout;
    middle->setSpacing(2);
    bar_ = new BudgetBar(true, this);
    bar_->setFixedHeight(22);
    middle->addWidget(bar_);
    auto* words = new QHBoxLayout;
    parts_ = new TextLabel({}, TypeRole::Axis, TextColor::Text2, false, this);
    parts_->setElide(true);
    budget_ = new TextLabel({}, TypeRole::Axis, TextColor::Text2, false, this);
    words->addWidget(parts_, 1);
    words->addWidget(budget_);
    middle->addLayout(words);
    row->addLayout(middle, 1);
    row->addSpacing(20);
    time_ = new TextLabel({}, TypeRole::Title, TextColor::Text1, true, this);
    count_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
    row->addLayout(pair(time_, count_));
    row->addSpacing(20);
    command_ = new QPushButton(tr("Command"), this);
    command_->setToolTip(tr("Copies the command line of this run"));
    start_ = new QPushButton(icon(QStringLiteral("run"), themeTokens().onAccent), tr("Start"), this);
    setPrimary(start_);
    row->addWidget(command_);
    row->addSpacing(8);
    row->addWidget(start_);
    timer_.setSingleShot(true);
    timer_.setInterval(kPriceDelayMs);
    connect(&timer_, &QTimer::timeout, this, &DataBar::price);
    connect(command_, &QPushButton::clicked, this, &DataBar::commandWanted);
    connect(start_, &QPushButton::clicked, this, &DataBar::startWanted);
    connect(try_, &QPushButton::clicked, this, [this] { emit experimentWanted(nearest_); });
    if (runs_ != nullptr) {
        connect(runs_, &RunController::priced, this, &DataBar::take);
    }
    setStartable(false);
    showTime();
}

void DataBar::refresh() {
    timer_.start();
}

void DataBar::setSteps(std::int64_t steps) {
    steps_ = steps;
    showTime();
}

void DataBar::setStartable(bool on, const QString& why) {
    start_->setEnabled(on && runs_ != nullptr && !runs_->running());
    start_->setVisible(runs_ == nullptr || !runs_->running());
    start_->setToolTip(on ? tr("Ctrl+Return") : why);
}

void DataBar::price() {
    asked_ = experiment_();
    ticket_ = runs_ != nullptr && !asked_.empty() ? runs_->price(asked_) : 0;
    if (ticket_ == 0) {
        showPrice({});
    }
}

void DataBar::take(quint64 ticket, const QString& metrics, const QString& error) {
    if (ticket_ != 0 && ticket > ticket_ && isVisible()) { // a later question of another form replaced this one
        price();
        return;
    }
    if (ticket != ticket_ || ticket == 0) {
        return;
    }
    ticket_ = 0;
    showPrice(error.isEmpty() ? metrics : QString());
    if (!error.isEmpty()) {
        spare_->setText(error);
        spare_->setToolTip(error);
    }
}

void DataBar::showPrice(const QString& metrics) {
    const auto price = runPrice(metrics.toStdString());
    mark_->setText({});
    verdict_->setText(price ? QString() : tr("No price yet"));
    spare_->setText({});
    spare_->setToolTip({});
    parts_->setText({});
    budget_->setText({});
    bar_->setVisible(price.has_value());
    try_->hide();
    searching_.cancel();
    stepSeconds_ = price ? price->stepSeconds : 0;
    emit stepSecondsChanged(stepSeconds_);
    showTime();
    if (!price) {
        return;
    }
    mark_->setText(price->fits ? QStringLiteral("✓") : QStringLiteral("✗"));
    mark_->setColor(price->fits ? TextColor::Good : TextColor::Bad);
    verdict_->setText(price->fits ? tr("Fits: %1 of %2").arg(bytesText(price->peak), bytesText(price->budget))
                                  : tr("Does not fit: %1 over").arg(bytesText(price->missing)));
    const QString place = price->peakAt.isEmpty() ? QString() : tr(", peak at %1").arg(price->peakAt);
    spare_->setText(price->fits ? tr("%1 spare%2").arg(bytesText(price->budget - price->peak), place)
                                : tr("it ends at %1").arg(price->peakAt.isEmpty() ? tr("its peak") : price->peakAt));
    std::vector<BudgetShare> shares;
    std::vector<std::pair<std::uint64_t, QString>> words;
    for (int i = 0; i < base::kCategoryCount; ++i) {
        const auto category = static_cast<base::MemoryCategory>(i);
        if (const std::uint64_t bytes = price->peakByCategory[static_cast<std::size_t>(i)]; bytes > 0) {
            const QString name = textOf(base::categoryName(category));
            shares.push_back({name, bytes, themeTokens().category(category)});
            words.emplace_back(bytes, tr("%1 %2").arg(name, bytesText(bytes)));
        }
    }
    bar_->set(std::move(shares), price->budget, price->missing, tr("missing"));
    std::stable_sort(words.begin(), words.end(),
                     [](const auto& one, const auto& other) { return one.first > other.first; });
    QStringList named;
    for (std::size_t i = 0; i < std::min(words.size(), kNamedShares); ++i) {
        named << words[i].second;
    }
    parts_->setText(named.join(QStringLiteral(", ")));
    budget_->setText(tr("budget %1").arg(bytesText(price->budget)));
    if (!price->fits) {
        searchNearest();
    }
}

void DataBar::searchNearest() {
    std::string plan;
    try {
        plan = runs_->asPlan(asked_);
    } catch (const std::exception&) {
        return; // the price has said what is wrong
    }
    searching_.start([asked = asked_, plan] { return plannedPrice(asked, plan); },
                     [this](const engine::QueuePrice& price) { showNearest(price); });
}

void DataBar::showNearest(const engine::QueuePrice& price) {
    if (price.fits || !price.error.empty()) {
        return;
    }
    const QString text = nearestText(price);
    spare_->setText(text);
    spare_->setToolTip(text);
    nearest_ = textOf(price.nearestSpec);
    try_->setVisible(!nearest_.isEmpty());
}

void DataBar::showTime() {
    const bool known = steps_ > 0 && stepSeconds_ > 0;
    time_->setText(known ? longTimeText(stepSeconds_ * static_cast<double>(steps_)) : unknownText());
    count_->setText(steps_ == 0   ? QString()
                    : steps_ == 1 ? tr("1 step, one epoch")
                                  : tr("%1 steps, one epoch").arg(countText(steps_)));
}

QList<QWidget*> DataBar::stops() const {
    return {try_, command_, start_};
}

} // namespace vitrine::ui
