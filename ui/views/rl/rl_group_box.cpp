// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/rl/rl_group_box.h"

#include <QGuiApplication>
#include <QHBoxLayout>
#include <QSignalBlocker>
#include <QTableView>
#include <QTextDocumentFragment>
#include <QVBoxLayout>
#include <utility>

#include "ui/views/rl/rl_answer_box.h"
#include "ui/widgets/base/controls.h"
#include "ui/widgets/plots/compare_delegates.h"
#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

namespace {

constexpr int kAnswerRow = 21;
constexpr qsizetype kShownPrompt = 180; ///< characters

} // namespace

RlGroupBox::RlGroupBox(bool pairs, QWidget* parent) : QWidget(parent), pairs_(pairs) {
    parts_ = new QBoxLayout(QBoxLayout::TopToBottom, this);
    parts_->setContentsMargins(0, 0, 0, 0);
    parts_->setSpacing(0);
    auto* column = new QVBoxLayout;
    column->setSpacing(0);
    prompt_ = new TextLabel({}, TypeRole::Table, TextColor::Text1, false, this);
    prompt_->setWordWrap(true);
    prompt_->setContentsMargins(12, 6, 12, 4);
    table_ = new FactTable(tr("Answers of the group"), this);
    table_->setRowHeight(kAnswerRow);
    facts_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, this);
    facts_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    facts_->setContentsMargins(12, 4, 12, 4);
    auto* answers = new QHBoxLayout;
    answers->setSpacing(0);
    first_ = new RlAnswerBox(this);
    second_ = new RlAnswerBox(this);
    answers->addWidget(first_, 1);
    answers->addWidget(second_, 1);
    column->addWidget(prompt_);
    column->addWidget(table_);
    column->addWidget(facts_);
    parts_->addLayout(column);
    parts_->addLayout(answers, 1);
    connect(table_->view(), &QTableView::clicked, this, &RlGroupBox::clicked);
    connect(table_->view()->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex& current) {
                if (current.isValid() && QGuiApplication::keyboardModifiers().testFlag(Qt::ControlModifier) == false) {
                    chosen_ = static_cast<std::size_t>(current.row());
                    showAnswers();
                }
            });
    connect(table_->view(), &QTableView::activated, this, &RlGroupBox::answerOpened);
}

void RlGroupBox::setWide(bool wide) {
    parts_->setDirection(wide ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
    parts_->setStretch(0, wide ? 1 : 0);
}

void RlGroupBox::clicked(const QModelIndex& index) {
    const auto row = static_cast<std::size_t>(index.row());
    if (pairs_ && QGuiApplication::keyboardModifiers().testFlag(Qt::ControlModifier)) {
        beside_ = row == chosen_ || beside_ == row ? std::nullopt : std::optional(row);
    } else {
        chosen_ = row;
    }
    showAnswers();
}

void RlGroupBox::setGroup(const RlSamplesPtr& samples, std::size_t group) {
    if (samples == samples_ && group == group_) {
        return;
    }
    const bool same = samples != nullptr && samples_ != nullptr && group == group_;
    samples_ = samples;
    group_ = group;
    const bool shown = samples != nullptr && group < samples->groups.size();
    setVisible(shown);
    if (!shown) {
        return;
    }
    const RlSampleGroup& of = samples->groups[group];
    chosen_ = same && chosen_ < of.samples.size() ? chosen_ : 0; // the same place of another step
    beside_.reset();
    const QString prompt = of.prompt.trimmed();
    const QString shownPrompt = prompt.size() > kShownPrompt ? prompt.left(kShownPrompt) + QStringLiteral("…") : prompt;
    prompt_->setTextFormat(prompt.isEmpty() ? Qt::PlainText : Qt::RichText);
    prompt_->setText(prompt.isEmpty() ? tr("The prompt of this group was not kept.")
                                      : QStringLiteral("<span style=\"color:%1\">%2</span>&nbsp; %3")
                                            .arg(themeTokens().text3.name(), tr("Prompt"),
                                                 shownPrompt.toHtmlEscaped().replace(u'\n', QStringLiteral("<br>"))));
    prompt_->setColor(prompt.isEmpty() ? TextColor::Text3 : TextColor::Text1);
    prompt_->setToolTip(prompt);
    const FlatTreePtr table = rlGroupTable(of);
    std::vector<int> widths{46, 64, 50, 120};
    if (table->columns.size() > 5) {
        widths.insert(widths.begin() + 3, 62);
    }
    const QSignalBlocker quiet(table_->view()->selectionModel());
    table_->setNumberWidths(std::move(widths));
    table_->setTable(table);
    const auto last = static_cast<int>(table->columns.size()) - 1;
    for (int i = 0; i <= last; ++i) {
        table_->view()->setItemDelegateForColumn(i, nullptr);
    }
    delete std::exchange(bars_, new DeltaBarDelegate(table_->view(), true));
    table_->view()->setItemDelegateForColumn(last, bars_);
    facts_->setText(rlGroupFacts(of));
    showAnswers();
}

void RlGroupBox::chooseAnswer(std::size_t index) {
    chosen_ = index;
    beside_.reset();
    showAnswers();
}

void RlGroupBox::showAnswers() {
    first_->setAnswer(samples_, group_, chosen_);
    second_->setAnswer(samples_, group_, beside_);
    const QSignalBlocker quiet(table_->view()->selectionModel());
    table_->view()->selectRow(static_cast<int>(chosen_));
    if (beside_) {
        table_->view()->selectionModel()->select(table_->model()->index(static_cast<int>(*beside_), 0),
                                                 QItemSelectionModel::Select | QItemSelectionModel::Rows);
    }
    table_->view()->viewport()->update();
}

QString RlGroupBox::promptText() const {
    return QTextDocumentFragment::fromHtml(prompt_->text()).toPlainText();
}

} // namespace vitrine::ui
