// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/rl/rl_group_box.h"

#include <QGuiApplication>
#include <QHBoxLayout>
#include <QSignalBlocker>
#include <QTableView>
#include <QTextDocumentFragment>
#include <QVBoxLayout>
#include <algorithm>
#include <numeric>
#include <utility>

#include "ui/views/rl/rl_answer_box.h"
#include "ui/widgets/base/controls.h"
#include "ui/widgets/plots/compare_delegates.h"
#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

namespace {

constexpr int kAnswerRow = 21, kPairRow = 18;
constexpr qsizetype kShownPrompt = 180;    ///< characters
constexpr int kLeastAnswer = 280;          ///< width of one of two answers that stand beside each other
constexpr int kFullPair = 800;             ///< width from which on a table says all of two answers
constexpr int kPlaceColumn = 34;           ///< the first column, where it has numbers alone
constexpr int kMarkRoom = 28, kLetter = 6; ///< px before an answer, and of a letter of it
constexpr qsizetype kMostLetters = 60;
constexpr int kEdge = 12;       ///< right of the last column
constexpr int kBarColumn = 120; ///< of advantages with their bars
constexpr int kAnswersShare = 3, kTableShare = 2;

/// Width of a column by its title; 0: of answers, which take what is left.
int columnWidth(const FlatColumn& column) {
    static const std::pair<QString, int> kWidths[] = {{QObject::tr("Tokens"), 46},
                                                      {QObject::tr("Difference"), 64},
                                                      {QObject::tr("Reward"), 50},
                                                      {QObject::tr("Judged in"), 62},
                                                      {QObject::tr("Advantage"), 66}};
    const auto* found = std::ranges::find(kWidths, column.title, &std::pair<QString, int>::first);
    return found == std::end(kWidths) ? 0 : found->second;
}

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
    facts_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, this);
    facts_->setElide(true);
    facts_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    facts_->setContentsMargins(12, 2, 12, 2);
    answers_ = new QBoxLayout(QBoxLayout::LeftToRight);
    answers_->setSpacing(0);
    first_ = new RlAnswerBox(this);
    second_ = new RlAnswerBox(this);
    answers_->addWidget(first_, 1);
    answers_->addWidget(second_, 1);
    column->addWidget(prompt_);
    column->addWidget(table_);
    column->addWidget(facts_);
    column->addStretch(0);
    parts_->addLayout(column);
    parts_->addLayout(answers_, 1);
    connect(table_->view(), &QTableView::clicked, this, &RlGroupBox::clicked);
    connect(table_->view()->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex& current) {
                if (current.isValid() && QGuiApplication::keyboardModifiers().testFlag(Qt::ControlModifier) == false) {
                    chooseAnswer(static_cast<std::size_t>(current.row()));
                }
            });
    connect(table_->view(), &QTableView::activated, this, &RlGroupBox::answerOpened);
}

void RlGroupBox::setWide(bool wide) {
    wide_ = wide;
    parts_->setDirection(wide ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
    parts_->setStretch(0, wide ? kTableShare : 0);
    parts_->setStretch(1, wide ? kAnswersShare : 1);
    arrange();
}

void RlGroupBox::setTall(bool tall) {
    if (tall_ != tall) {
        tall_ = tall;
        arrange();
    }
}

void RlGroupBox::clicked(const QModelIndex& index) {
    const auto row = static_cast<std::size_t>(index.row());
    if (!pairs_ || !QGuiApplication::keyboardModifiers().testFlag(Qt::ControlModifier)) {
        chooseAnswer(row);
        return;
    }
    beside_ = row == chosen_ || beside_ == row ? std::nullopt : std::optional(row);
    showAnswers();
}

void RlGroupBox::setGroups(const RlGroupPair& pair) {
    if (pair == pair_) {
        return;
    }
    const bool same = pair.any() != nullptr && pair_.any() != nullptr && pair.any()->number == pair_.any()->number;
    pair_ = pair;
    const RlSampleGroup* shown = pair_.any();
    setVisible(shown != nullptr);
    if (shown == nullptr) {
        return;
    }
    chosen_ = same && chosen_ < shown->samples.size() ? chosen_ : 0; // the same place of another step
    beside_.reset();
    showPrompt(*shown);
    tableWidth_ = 0;
    arrange();
    showAnswers();
}

void RlGroupBox::showPrompt(const RlSampleGroup& group) {
    const QString prompt = group.prompt.trimmed();
    const QString shown = prompt.size() > kShownPrompt ? prompt.left(kShownPrompt) + QStringLiteral("…") : prompt;
    prompt_->setTextFormat(prompt.isEmpty() ? Qt::PlainText : Qt::RichText);
    prompt_->setText(prompt.isEmpty() ? tr("The prompt of this group was not kept.")
                                      : QStringLiteral("<span style=\"color:%1\">%2</span>&nbsp; %3")
                                            .arg(themeTokens().text3.name(), tr("Prompt"),
                                                 shown.toHtmlEscaped().replace(u'\n', QStringLiteral("<br>"))));
    prompt_->setColor(prompt.isEmpty() ? TextColor::Text3 : TextColor::Text1);
    prompt_->setToolTip(prompt);
}

/// With the columns that its width has room for, and the ends of the answers that theirs have.
void RlGroupBox::showTable() {
    const bool two = pair_.ofA() != nullptr && pair_.ofB() != nullptr;
    const bool brief = tableWidth_ < kFullPair;
    const auto make = [&](qsizetype letters) {
        return two ? rlPairTable(*pair_.ofA(), *pair_.ofB(), brief, letters) : rlGroupTable(*pair_.any(), letters);
    };
    const FlatTreePtr whole = make(kMostLetters);
    QString badges;
    std::vector<int> widths;
    int left = tableWidth_ - (two ? kPlaceColumn : 0);
    for (const FlatColumn& column : whole->columns) {
        badges +=
            two && column.title.size() == 1 && column.title != QLatin1String("#") ? column.title : QStringLiteral(" ");
        widths.push_back(columnWidth(column));
    }
    widths.back() = two ? widths.back() + kEdge : kBarColumn;
    left -= std::accumulate(widths.begin(), widths.end(), 0);
    const int answer = std::max(16, two ? left / 2 : left);
    std::ranges::replace(widths, 0, answer);
    widths.erase(widths.begin()); // the first column takes the rest
    const FlatTreePtr table = make(std::clamp<qsizetype>((answer - kMarkRoom) / kLetter, 8, kMostLetters));
    const QSignalBlocker quiet(table_->view()->selectionModel());
    table_->setRowHeight(two ? kPairRow : kAnswerRow);
    table_->setNumberWidths(std::move(widths));
    table_->setTable(table, two ? badges : QString());
    const auto last = static_cast<int>(table->columns.size()) - 1;
    for (int i = 0; i <= last; ++i) {
        table_->view()->setItemDelegateForColumn(i, nullptr);
    }
    delete std::exchange(bars_, nullptr);
    if (!two) {
        bars_ = new DeltaBarDelegate(table_->view(), true);
        table_->view()->setItemDelegateForColumn(last, bars_);
    }
    facts_->setText(two ? rlPairFacts(*pair_.ofA(), *pair_.ofB()) : rlGroupFacts(*pair_.any()));
    facts_->setToolTip(facts_->text());
    selectRows();
}

void RlGroupBox::selectRows() {
    const QSignalBlocker quiet(table_->view()->selectionModel());
    table_->view()->selectRow(static_cast<int>(chosen_));
    if (beside_) {
        table_->view()->selectionModel()->select(table_->model()->index(static_cast<int>(*beside_), 0),
                                                 QItemSelectionModel::Select | QItemSelectionModel::Rows);
    }
    table_->view()->viewport()->update();
}

void RlGroupBox::chooseAnswer(std::size_t index) {
    chosen_ = index;
    beside_.reset();
    showAnswers();
}

void RlGroupBox::showAnswers() {
    if (pair_.any() == nullptr) {
        return;
    }
    if (pair_.both()) {
        const auto show = [](RlAnswerBox* box, const RlSampleGroup* of, const RlSamplesPtr& samples, std::size_t group,
                             std::size_t answer, QChar letter, const QString& why) {
            if (of != nullptr && answer < of->samples.size()) {
                box->setAnswer(samples, group, answer, letter);
            } else {
                box->setMissing(letter, of != nullptr ? tr("This group has no answer %1.").arg(answer + 1) : why);
            }
        };
        show(first_, pair_.ofA(), pair_.a, pair_.groupA, chosen_, QLatin1Char('A'), pair_.whyNoA);
        show(second_, pair_.ofB(), pair_.b, pair_.groupB, beside_.value_or(chosen_), QLatin1Char('B'), pair_.whyNoB);
    } else {
        first_->setAnswer(pair_.a, pair_.groupA, chosen_);
        second_->setAnswer(pair_.a, pair_.groupA, beside_);
    }
    double scale = 0;
    for (const RlAnswerBox* box : {first_, second_}) {
        scale = box->sample() != nullptr ? std::max(scale, RlSamples::tintScale(*box->sample())) : scale;
    }
    first_->setScale(scale);
    second_->setScale(scale);
    arrange();
    selectRows();
}

bool RlGroupBox::sideBySide() const {
    return answers_->direction() == QBoxLayout::LeftToRight;
}

/// What stands beside what, and the columns of the table, by the width.
void RlGroupBox::arrange() {
    const int shares = kTableShare + kAnswersShare;
    const int table = wide_ ? width() * kTableShare / shares : width();
    const bool beside = (wide_ ? width() - table : width()) >= 2 * kLeastAnswer;
    answers_->setDirection(beside ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
    const bool stacked = !second_->isHidden() && !beside;
    const bool low = stacked || wide_; // below the view there is little height
    first_->setLow(low, true, tall_);
    second_->setLow(low, beside || first_->sample() == nullptr, tall_);
    answers_->setStretch(0, stacked && tall_ ? 0 : 1); // what is left is left below both
    if (table != tableWidth_ && pair_.any() != nullptr) {
        tableWidth_ = table;
        showTable();
    }
}

void RlGroupBox::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    arrange();
}

QString RlGroupBox::promptText() const {
    return QTextDocumentFragment::fromHtml(prompt_->text()).toPlainText();
}

} // namespace vitrine::ui
