// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/finetune/answer_table.h"

#include <QComboBox>
#include <QHeaderView>
#include <QPainter>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalBlocker>
#include <QStyledItemDelegate>
#include <QTextLayout>
#include <algorithm>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

constexpr int kAnswerLine = 16, kAnswerLines = 2;
constexpr double kPromptShare = 0.258, kAnswerShare = 0.367; ///< of the width
constexpr int kTokenWidth = 52;

/// A text in at most two lines, the second one elided.
void drawTwoLines(QPainter& painter, const QRectF& box, const QString& text, const QColor& color, const QFont& font) {
    QTextLayout layout(text.simplified(), font);
    QTextOption wrap;
    wrap.setWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
    layout.setTextOption(wrap);
    QStringList lines;
    layout.beginLayout();
    for (QTextLine line = layout.createLine(); line.isValid() && lines.size() < kAnswerLines;
         line = layout.createLine()) {
        line.setLineWidth(box.width());
        const bool last = lines.size() + 1 == kAnswerLines;
        const QString rest = layout.text().mid(line.textStart());
        lines << (last ? QFontMetricsF(font).elidedText(rest, Qt::ElideRight, box.width())
                       : layout.text().mid(line.textStart(), line.textLength()).trimmed());
    }
    layout.endLayout();
    double y = box.center().y() - kAnswerLine;
    for (const QString& line : lines) {
        drawText(painter, QRectF(box.left(), y, box.width() + 1, kAnswerLine), Qt::AlignVCenter, line, color, font);
        y += kAnswerLine;
    }
}

/// Prompts and answers; tokens stand at the right of an answer.
class AnswerDelegate final : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        const ThemeTokens& t = themeTokens();
        const bool selected = (option.state & QStyle::State_Selected) != 0;
        painter->fillRect(option.rect, selected ? t.selection : t.canvas);
        const QRectF cell(option.rect);
        hairline(*painter, cell.left(), cell.right() + 1, cell.bottom() - 1, t.line0);
        const QFont font = Theme::instance().font(TypeRole::Table);
        const bool newest = index.column() == 2;
        const double tokens = index.column() > 0 ? kTokenWidth : 0;
        if (index.column() > 0) {
            plumbline(*painter, cell.left(), cell.top(), cell.bottom(), t.line0);
            drawText(*painter,
                     QRectF(cell.right() - kTokenWidth - 11, cell.center().y() - kAnswerLine, kTokenWidth, 16),
                     Qt::AlignRight | Qt::AlignVCenter, index.data(RawRole).toString(), t.text3, font);
        }
        const double left = index.column() == 0 ? 8 : 12;
        drawTwoLines(*painter, cell.adjusted(left, 0, -12 - tokens, -1), index.data().toString(),
                     newest ? t.text1 : t.text2, font);
    }
};

QString tokensText(std::int64_t tokens) {
    return QObject::tr("%1 tok").arg(countText(tokens));
}

FlatTreePtr answerRows(const TrainingAnswers& answers, std::int64_t left, std::int64_t right) {
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {{QObject::tr("Prompt")}, {QObject::tr("Left")}, {QObject::tr("Right")}};
    const AnswerSet* sets[] = {answers.at(left), answers.at(right)};
    for (qsizetype i = 0; i < answers.prompts.size(); ++i) {
        FlatNode& node = tree->nodes.emplace_back();
        node.key = static_cast<quint64>(i) + 1;
        node.cells.emplace_back(answers.prompts[i]);
        for (const AnswerSet* set : sets) {
            const TrainingAnswer* answer = set != nullptr ? &set->answers[static_cast<std::size_t>(i)] : nullptr;
            FlatCell cell(answer != nullptr ? answer->text : QString());
            cell.raw = answer != nullptr && answer->tokens > 0 ? tokensText(answer->tokens) : QStringLiteral(" ");
            cell.tip = cell.text;
            node.cells.push_back(std::move(cell));
        }
        node.cells.front().tip = answers.prompts[i];
    }
    return tree;
}

QComboBox* stepBox(const QString& name, QWidget* parent) {
    auto* box = new QComboBox(parent);
    box->setAccessibleName(name);
    box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    setControlHeight(box, 20);
    return box;
}

} // namespace

AnswerTable::AnswerTable(QWidget* parent)
    : QWidget(parent), head_(new Surface(Surface::Fill::Panel, Surface::Top | Surface::Bottom, this)),
      title_(new TextLabel(tr("Answers"), TypeRole::Table, TextColor::Text1, true, head_)),
      facts_(new TextLabel({}, TypeRole::Table, TextColor::Text3, false, head_)),
      next_(new TextLabel({}, TypeRole::Table, TextColor::Text3, false, head_)),
      add_(new QPushButton(tr("Add prompts"), head_)), left_(stepBox(tr("Step of the left answers"), head_)),
      right_(stepBox(tr("Step of the right answers"), head_)), view_(new QTableView(this)),
      model_(new FlatTreeModel(this)) {
    next_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    setControlHeight(add_, 20);
    add_->setToolTip(tr("Opens the form with the options of fixed prompts"));
    view_->setModel(model_);
    view_->setAccessibleName(tr("Answers to fixed prompts"));
    view_->setItemDelegate(new AnswerDelegate(view_));
    view_->setFrameShape(QFrame::NoFrame);
    view_->setShowGrid(false);
    view_->setSelectionBehavior(QAbstractItemView::SelectRows);
    view_->setEditTriggers(QAbstractItemView::NoEditTriggers);
    view_->setTabKeyNavigation(false);
    view_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    view_->horizontalHeader()->hide();
    view_->verticalHeader()->hide();
    view_->verticalHeader()->setDefaultSectionSize(kRow);
    view_->verticalHeader()->setMinimumSectionSize(kRow);
    connect(add_, &QPushButton::clicked, this, &AnswerTable::promptsWanted);
    connect(left_, &QComboBox::activated, this, [this] { showChosen(); });
    connect(right_, &QComboBox::activated, this, [this](int index) {
        follows_ = index + 1 == right_->count();
        showChosen();
    });
    setRun(nullptr);
}

void AnswerTable::setRun(const TrainingRunPtr& run) {
    const bool other = run == nullptr || run_ == nullptr || run->answers().prompts != run_->answers().prompts;
    run_ = run;
    follows_ = follows_ || other;
    fillBoxes();
    showChosen();
}

void AnswerTable::fillBoxes() {
    const auto fill = [this](QComboBox* box, std::int64_t keep, const QString& first, const QString& last) {
        const QSignalBlocker quiet(box);
        box->clear();
        const std::vector<AnswerSet>& sets = run_->answers().sets;
        for (std::size_t i = 0; i < sets.size(); ++i) {
            const QString lead = i + 1 == sets.size() && i > 0 ? last : i == 0 ? first : QString();
            box->addItem(lead.isEmpty() ? tr("Step %1").arg(countText(sets[i].step))
                                        : tr("%1, step %2").arg(lead, countText(sets[i].step)),
                         static_cast<qlonglong>(sets[i].step));
        }
        box->setCurrentIndex(std::max(0, box->findData(static_cast<qlonglong>(keep))));
        box->adjustSize();
    };
    const bool any = run_ != nullptr && !run_->answers().empty();
    left_->setVisible(any);
    right_->setVisible(any);
    if (any) {
        const TrainingAnswers& answers = run_->answers();
        const QString before = answers.sets.front().step == 0 ? tr("Before") : tr("First");
        fill(left_, leftStep(), before, tr("Newest"));
        fill(right_, follows_ ? answers.sets.back().step : rightStep(), before, tr("Newest"));
    }
}

void AnswerTable::showChosen() {
    const bool any = run_ != nullptr && !run_->answers().empty();
    const auto next = run_ != nullptr ? run_->nextAnswers() : std::nullopt;
    add_->setVisible(!any && !next);
    if (any) {
        const auto count = run_->answers().prompts.size();
        facts_->setText(count == 1 ? tr("1 fixed prompt, greedy") : tr("%1 fixed prompts, greedy").arg(count));
        model_->setTree(answerRows(run_->answers(), leftStep(), rightStep()));
    } else {
        facts_->setText(next ? tr("The fixed prompts have no answers yet.") : tr("No fixed prompts."));
        model_->setTree(std::make_shared<FlatTree>());
    }
    next_->setText(any && next ? tr("next at step %1").arg(countText(*next)) : QString());
    place();
    emit chosen();
}

bool AnswerTable::show(std::int64_t step, bool left) {
    QComboBox* box = left ? left_ : right_;
    const int index = box->findData(static_cast<qlonglong>(step));
    if (index < 0) {
        return false;
    }
    box->setCurrentIndex(index);
    follows_ = left ? follows_ : index + 1 == box->count();
    showChosen();
    return true;
}

std::int64_t AnswerTable::leftStep() const {
    return left_->currentIndex() < 0 ? -1 : left_->currentData().toLongLong();
}

std::int64_t AnswerTable::rightStep() const {
    return right_->currentIndex() < 0 ? -1 : right_->currentData().toLongLong();
}

void AnswerTable::setMostRows(int rows) {
    if (rows != mostRows_) {
        mostRows_ = rows;
        place();
    }
}

void AnswerTable::place() {
    const int rows = std::min(model_->rowCount(), mostRows_);
    setFixedHeight(kHead + rows * kRow);
    const int prompt = static_cast<int>(width() * kPromptShare), answer = static_cast<int>(width() * kAnswerShare);
    const int room =
        width() - (model_->rowCount() > rows && rows > 0 ? view_->verticalScrollBar()->sizeHint().width() : 0);
    head_->setGeometry(0, 0, width(), kHead);
    view_->setVisible(rows > 0);
    view_->setGeometry(0, kHead, width(), rows * kRow);
    for (int column = 0; column < model_->columnCount(); ++column) {
        view_->setColumnWidth(column, column == 0 ? prompt : column == 1 ? answer : room - prompt - answer);
    }
    const int title = static_cast<int>(title_->sizeHint().width());
    const bool any = model_->rowCount() > 0;
    title_->setGeometry(8, 1, title, kHead - 2);
    facts_->setGeometry(16 + title, 1, (any ? prompt - 16 - title : facts_->sizeHint().width() + 2), kHead - 2);
    add_->setGeometry(facts_->geometry().right() + 10, 3, add_->sizeHint().width(), 20);
    left_->move(prompt + 12, 3);
    right_->move(prompt + answer + 12, 3);
    left_->resize(left_->sizeHint().width(), 20);
    right_->resize(right_->sizeHint().width(), 20);
    const int nextWidth = next_->sizeHint().width();
    next_->setGeometry(width() - nextWidth - 12, 1, nextWidth, kHead - 2);
    next_->setVisible(right_->geometry().right() + 8 < next_->geometry().left());
}

void AnswerTable::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    place();
}

QString AnswerTable::asText() const {
    return asMarkdown(model_->tree());
}

} // namespace vitrine::ui
