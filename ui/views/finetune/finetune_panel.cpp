// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/finetune/finetune_panel.h"

#include <QDateTime>
#include <QItemSelectionModel>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>

#include "ui/models/common/format.h"
#include "ui/models/finetune/training_text.h"
#include "ui/views/finetune/switch_section.h"
#include "ui/widgets/base/inspector_column.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

FinetunePanel::FinetunePanel() : header_(new DockHeader(tr("Time"))), job_(this) {
    QVBoxLayout* column = inspectorColumn(this);
    QWidget* content = column->parentWidget();
    doneAt_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, header_);
    header_->addControl(doneAt_);
    number_ = new TextLabel({}, TypeRole::Number, TextColor::Text1, false, content);
    number_->setContentsMargins(12, 8, 12, 0);
    how_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, content);
    how_->setWordWrap(true);
    how_->setContentsMargins(12, 0, 12, 10);
    time_ = new FactTable(tr("Time and speed"), content);
    trained_ = new FactTable(tr("What is trained"), content);
    for (FactTable* table : {time_, trained_}) {
        table->setNumberWidth(210);
    }
    switches_ = new SwitchSection(content);
    column->addWidget(number_);
    column->addWidget(how_);
    column->addWidget(switches_);
    buildCheckpoints(content);
    column->addWidget(new DockHeader(tr("What is trained")));
    column->addWidget(trained_);
    column->addWidget(time_);
    column->addStretch(1);
    connect(switches_, &SwitchSection::outlineWanted, this, &FinetunePanel::outlineWanted);
    connect(switches_, &SwitchSection::branchWanted, this,
            [this](const QString& key, const QString& value) { emit branchWanted(newest_, key, value); });
}

void FinetunePanel::buildCheckpoints(QWidget* content) {
    auto* column = static_cast<QVBoxLayout*>(content->layout());
    checkpointHeader_ = new DockHeader(tr("Checkpoints"));
    checkpointRule_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, checkpointHeader_);
    checkpointHeader_->addControl(checkpointRule_);
    checkpoints_ = new FactTable(tr("Checkpoints"), content);
    checkpoints_->setNumberWidths({110, 130});
    buttons_ = new QWidget(content);
    auto* row = new QHBoxLayout(buttons_);
    row->setContentsMargins(12, 8, 12, 0);
    row->setSpacing(8);
    branch_ = new QPushButton(tr("Branch from here"), buttons_);
    branch_->setToolTip(tr("Opens the form with this checkpoint and a new output folder"));
    resume_ = new QPushButton(tr("Resume"), buttons_);
    for (QPushButton* button : {branch_, resume_}) {
        setControlHeight(button, 22);
        row->addWidget(button);
    }
    row->addStretch(1);
    hint_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, content);
    hint_->setWordWrap(true);
    hint_->setContentsMargins(12, 8, 12, 10);
    column->addWidget(checkpointHeader_);
    column->addWidget(checkpoints_);
    column->addWidget(buttons_);
    column->addWidget(hint_);
    connect(checkpoints_->view(), &QTableView::clicked, this, [this](const QModelIndex& index) {
        if (const FlatNode* node = checkpoints_->model()->node(index)) {
            choose(static_cast<std::int64_t>(node->key));
        }
    });
    connect(branch_, &QPushButton::clicked, this,
            [this] { emit continueWanted(chosen_ != 0 ? chosen_ : newest_, true); });
    connect(resume_, &QPushButton::clicked, this,
            [this] { emit continueWanted(chosen_ != 0 ? chosen_ : newest_, false); });
}

void FinetunePanel::setRun(const sessions::RunInfo* info, const TrainingRunPtr& training,
                           const std::vector<sessions::RunInfo>& runs, std::uint64_t peak) {
    info_ = info != nullptr ? std::optional(*info) : std::nullopt;
    training_ = training;
    measured_ = info != nullptr && training != nullptr ? measuredPair(runs, *info, *training, peak) : std::nullopt;
    checkpointRule_->setText(info != nullptr ? checkpointRuleText(*info) : QString());
    setEnabled(info != nullptr);
    const TrainingTimeText words = info != nullptr ? trainingTimeText(*info, training.get()) : TrainingTimeText{};
    header_->setTitle(words.title.isEmpty() ? tr("Time") : words.title);
    number_->setText(words.number);
    how_->setText(words.how);
    live_ = info != nullptr && info->status == sessions::RunStatus::Running;
    const auto rest = training != nullptr && live_ ? training->rest() : std::nullopt;
    doneAt_->setText(rest ? tr("done at about %1")
                                .arg(QDateTime::currentDateTime()
                                         .addSecs(static_cast<qint64>(rest->seconds))
                                         .toString(QStringLiteral("HH:mm")))
                          : QString());
    const bool steps = training != nullptr && !training->empty();
    time_->setVisible(steps);
    if (steps) {
        time_->setTable(trainingTimeTable(*training));
    }
    trained_->setVisible(info != nullptr);
    if (info != nullptr) {
        trained_->setTable(trainedTable(*info, training.get()));
    }
    const FlatTreePtr saved = training != nullptr ? checkpointTable(*training) : std::make_shared<FlatTree>();
    checkpoints_->setTable(saved);
    checkpoints_->setVisible(!saved->nodes.empty());
    buttons_->setVisible(!saved->nodes.empty());
    newest_ = saved->nodes.empty() ? 0 : static_cast<std::int64_t>(saved->nodes.front().key);
    unfinished_ = training != nullptr && training->totalSteps() && training->lastStep() < *training->totalSteps();
    hasOutput_ = info != nullptr && experimentFrom(*info, 1, false).has_value();
    if (!checkpoints_->model()->indexOfKey(static_cast<quint64>(chosen_)).isValid()) {
        chosen_ = 0;
    }
    updateButtons();
    askPrices(runs);
    updateSwitches();
}

/// Once for a run: its experiment does not change. Of a run whose rows only the data say, from its first step on.
void FinetunePanel::askPrices(const std::vector<sessions::RunInfo>& runs) {
    const std::int64_t tokens = training_ != nullptr && !training_->empty() ? training_->steps().front().tokens : 0;
    const std::string asked =
        info_ ? std::to_string(info_->id) + (tokens > 0 ? " with steps " : " ") + info_->specJson : std::string();
    if (asked == asked_) {
        return;
    }
    asked_ = asked;
    prices_.reset();
    job_.cancel();
    emit planKnown(0, {});
    if (!info_ || (tokens == 0 && info_->status != sessions::RunStatus::Running)) {
        return;
    }
    std::vector<PastRun> past = measuredRuns(runs);
    std::erase_if(past, [](const PastRun& run) { return run.predicted == 0; }); // pricing them takes long
    job_.start([info = *info_, tokens, past = std::move(past)] { return switchPrices(info, tokens, past); },
               [this](std::optional<SwitchPrices> prices) {
                   prices_ = std::move(prices);
                   emit planKnown(prices_ ? prices_->peak : 0, prices_ ? prices_->band : ErrorBand{});
                   updateSwitches();
               });
}

void FinetunePanel::updateSwitches() {
    const QString why = !info_        ? QString()
                        : job_.busy() ? tr("Making plans of this run without each of them.")
                        : !prices_    ? tr("The planner cannot price this run.")
                                      : QString();
    switches_->setPrices(prices_, measured_, training_, newest_, why);
}

void FinetunePanel::choose(std::int64_t step) {
    chosen_ = step;
    updateButtons();
}

void FinetunePanel::updateButtons() {
    const std::int64_t step = chosen_ != 0 ? chosen_ : newest_;
    const QModelIndex row = checkpoints_->model()->indexOfKey(static_cast<quint64>(step));
    if (row.isValid() && !checkpoints_->view()->selectionModel()->isRowSelected(row.row())) {
        checkpoints_->view()->selectionModel()->select(row,
                                                       QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
    }
    branch_->setText(tr("Branch from %1").arg(countText(step)));
    resume_->setText(tr("Resume from %1").arg(countText(step)));
    resume_->setEnabled(!live_ && unfinished_);
    hint_->setText(step == 0 && hasOutput_ ? tr("None was saved yet. save_every writes one every so many steps.")
                   : step == 0
                       ? tr("None is saved: the run has no output folder. Name one, and save_every, in the form.")
                   : live_        ? tr("Resume is for a run that has stopped.")
                   : !unfinished_ ? tr("All steps of the run are done. Branch goes on with more of them.")
                                  : QString());
    hint_->setVisible(!hint_->text().isEmpty());
}

QString FinetunePanel::asText() const {
    QStringList parts{number_->text() + QLatin1Char(' ') + how_->text(), switches_->asText(), trained_->asText(),
                      time_->asText()};
    if (newest_ != 0) {
        parts << checkpoints_->asText();
    }
    return parts.join(QStringLiteral("\n\n"));
}

} // namespace vitrine::ui
