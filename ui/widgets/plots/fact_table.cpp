// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/fact_table.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QPainter>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

namespace {

constexpr int kFactTableRow = 24, kPadding = 12;
constexpr int kWordsLeft = 12; ///< of words in a column after numbers, which end at their right edge

QColor deltaColor(int delta, const ThemeTokens& theme) {
    return delta < 0 ? theme.good : delta == 0 ? theme.text3 : delta == 1 ? theme.bad : theme.text2;
}

QModelIndexList selectedRows(const QTableView& view) {
    return view.selectionModel() != nullptr ? view.selectionModel()->selectedRows() : QModelIndexList{};
}

/// Ctrl+C of a table over a FlatTreeModel.
class TableCopier final : public QObject {
public:
    TableCopier(QTableView* view, FlatTreeModel* model) : QObject(view), view_(view), model_(model) {
        view->installEventFilter(this);
    }

protected:
    bool eventFilter(QObject* watched, QEvent* event) override {
        if (event->type() == QEvent::KeyPress && static_cast<QKeyEvent*>(event)->matches(QKeySequence::Copy)) {
            QGuiApplication::clipboard()->setText(asTabSeparated(*model_, selectedRows(*view_)));
            return true;
        }
        return QObject::eventFilter(watched, event);
    }

private:
    QTableView* view_;
    FlatTreeModel* model_;
};

} // namespace

class FactTable::Head final : public QWidget {
public:
    explicit Head(FactTable* table) : QWidget(table), table_(table) { setFixedHeight(kFactTableRow); }

protected:
    void paintEvent(QPaintEvent*) override {
        const ThemeTokens& t = themeTokens();
        QPainter painter(this);
        painter.fillRect(rect(), t.panel);
        hairline(painter, 0, width(), 0, t.line1);
        hairline(painter, 0, width(), height() - 1, t.line0);
        const QFont font = Theme::instance().font(TypeRole::Axis);
        const auto& columns = table_->model_->tree().columns;
        double left = kPadding;
        for (std::size_t i = 0; i < columns.size(); ++i) {
            // As the cells below: only the last column keeps away from the edge.
            const int following = table_->widthFrom(static_cast<int>(i) + 1);
            const double right = width() - following - (following == 0 ? kPadding : 0);
            const QChar badge =
                static_cast<qsizetype>(i) < table_->badges_.size() ? table_->badges_[static_cast<int>(i)] : QChar(' ');
            // A badge says its letter already.
            const QString title = columns[i].title == QString(badge) ? QString() : columns[i].title;
            const double width = textWidth(title, font);
            left += i > 0 && !columns[i].number ? kWordsLeft : 0;
            const double free = right - left - (badge != QChar(' ') ? 20 : 0);
            const double shown = std::min(width, free);
            drawText(painter, QRectF(i > 0 && columns[i].number ? right - shown : left, 1, shown + 1, height() - 1),
                     Qt::AlignVCenter, title, t.text2, font);
            if (badge != QChar(' ')) {
                const bool words = i > 0 && !columns[i].number; // which begin at the left
                drawRunBadge(painter,
                             QRectF(std::round(words ? left : right - shown - 20), (height() - 16) / 2, 16, 16), badge,
                             true);
            }
            left = right;
        }
    }

private:
    FactTable* table_;
};

FactTable::FactTable(const QString& accessibleName, QWidget* parent)
    : QWidget(parent), model_(new FlatTreeModel(this)), head_(new Head(this)), view_(new QTableView(this)) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(head_);
    column->addWidget(view_);
    setUpTwin(view_, model_, accessibleName);
    view_->setSortingEnabled(false);
    view_->horizontalHeader()->hide();
    view_->horizontalHeader()->setMinimumSectionSize(16);
    view_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    view_->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    view_->setProperty("factTable", true);
    view_->viewport()->installEventFilter(this);
    fit();
}

void FactTable::setTable(FlatTreePtr table, const QString& badges) {
    badges_ = badges;
    model_->setTree(std::move(table));
    fit();
    head_->update();
}

void FactTable::setRowHeight(int pixels) {
    rowHeight_ = pixels;
    view_->verticalHeader()->setMinimumSectionSize(pixels);
    view_->verticalHeader()->setDefaultSectionSize(pixels);
    fit();
}

void FactTable::setNumberWidth(int pixels) {
    numberWidth_ = pixels;
    fit();
}

void FactTable::setNumberWidths(std::vector<int> pixels) {
    numberWidths_ = std::move(pixels);
    fit();
}

int FactTable::widthOf(int column) const {
    const auto at = static_cast<std::size_t>(column - 1);
    return at < numberWidths_.size() ? numberWidths_[at] : numberWidth_;
}

int FactTable::widthFrom(int column) const {
    int sum = 0;
    for (int i = std::max(1, column); i < model_->columnCount(); ++i) {
        sum += widthOf(i);
    }
    return sum;
}

void FactTable::fit() {
    view_->setFixedHeight(model_->rowCount() * rowHeight_);
    // Names and values explain themselves: a table without titles has no head.
    const auto titled = [](const FlatColumn& column) { return !column.title.isEmpty(); };
    const bool headed =
        badges_.size() > 0 || std::ranges::any_of(model_->tree().columns, titled) || model_->rowCount() == 0;
    head_->setVisible(headed);
    const int head = std::min(kFactTableRow, rowHeight_ + 4);
    head_->setFixedHeight(head);
    setFixedHeight(model_->rowCount() * rowHeight_ + (headed ? head : 0));
    const int columns = model_->columnCount();
    for (int i = 0; i < columns; ++i) {
        view_->setColumnWidth(i, i == 0 ? std::max(16, width() - widthFrom(1)) : widthOf(i));
    }
}

void FactTable::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    fit();
}

bool FactTable::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::Wheel) {
        event->ignore(); // the panel around it scrolls
        return true;
    }
    return QWidget::eventFilter(watched, event);
}

QString FactTable::asText() const {
    return asMarkdown(model_->tree());
}

void FactDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    const ThemeTokens& t = themeTokens();
    const auto* view = qobject_cast<const QTableView*>(option.widget);
    const bool panel = view != nullptr && view->property("factTable").toBool();
    const QColor ground = panel ? t.panel : index.row() % 2 == 1 ? t.band : t.canvas;
    painter->fillRect(option.rect, (option.state & QStyle::State_Selected) != 0 ? t.selection : ground);
    const bool number = (index.data(Qt::TextAlignmentRole).toInt() & Qt::AlignRight) != 0;
    const bool last = index.column() == index.model()->columnCount(index.parent()) - 1;
    QColor color = t.text1;
    const QVariant delta = index.data(DeltaRole);
    if (delta.isValid()) {
        color = deltaColor(delta.toInt(), t);
    } else if (index.data(Qt::UserRole).toBool() || (panel && index.column() == 0)) {
        color = t.text2;
    }
    int left = panel && index.column() > 0 ? (number ? 4 : kWordsLeft) : panel ? kPadding : 8;
    const QVariant category = index.data(CategoryRole);
    if (panel && index.column() == 0 && category.isValid()) {
        drawSwatch(*painter, QRectF(option.rect.left() + left, option.rect.center().y() - 5, 12, 12),
                   t.categories[static_cast<std::size_t>(category.toInt())]);
        left += 18;
    }
    const int right = panel && (last || index.column() == 0) ? kPadding : panel ? 0 : 8;
    const QRectF cell = QRectF(option.rect).adjusted(left, 0, -(last || !panel ? right : 0), 0);
    const QFont font = Theme::instance().font(TypeRole::Table, index.data(EmphasisRole).toBool());
    drawText(*painter, cell, static_cast<int>(Qt::AlignVCenter | (number ? Qt::AlignRight : Qt::AlignLeft)),
             index.data().toString(), color, font);
    if ((option.state & QStyle::State_HasFocus) != 0 && view != nullptr && view->hasFocus()) {
        painter->setPen(QPen(t.accent, 1));
        painter->drawRect(option.rect.adjusted(0, 0, -1, -1));
    }
}

QSize FactDelegate::sizeHint(const QStyleOptionViewItem&, const QModelIndex& index) const {
    const QFont font = Theme::instance().font(TypeRole::Table, index.data(EmphasisRole).toBool());
    return {static_cast<int>(textWidth(index.data().toString(), font)) + 18, kFactTableRow};
}

void setUpTwin(QTableView* view, FlatTreeModel* model, const QString& accessibleName) {
    view->setModel(model);
    view->setAccessibleName(accessibleName);
    view->setItemDelegate(new FactDelegate(view));
    view->setFrameShape(QFrame::NoFrame);
    view->setShowGrid(false);
    view->setSelectionBehavior(QAbstractItemView::SelectRows);
    view->setSelectionMode(QAbstractItemView::ExtendedSelection);
    view->setEditTriggers(QAbstractItemView::NoEditTriggers);
    view->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    view->setTabKeyNavigation(false);
    view->setWordWrap(false);
    view->verticalHeader()->hide();
    view->verticalHeader()->setDefaultSectionSize(kFactTableRow);
    view->verticalHeader()->setMinimumSectionSize(kFactTableRow);
    view->horizontalHeader()->setFixedHeight(kFactTableRow);
    view->horizontalHeader()->setHighlightSections(false);
    view->horizontalHeader()->setStretchLastSection(false);
    view->setSortingEnabled(true);
    view->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
    new TableCopier(view, model);
}

} // namespace vitrine::ui
