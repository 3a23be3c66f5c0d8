// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/base/delegates.h"

#include <QAction>
#include <QClipboard>
#include <QFontMetricsF>
#include <QGuiApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QPainter>
#include <QTreeView>

#include "ui/models/common/flat_tree.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

namespace {

constexpr int kRowHeight = 24;
constexpr double kBarWidth = 64, kBarHeight = 8;

bool selected(const QStyleOptionViewItem& option) {
    return option.state & QStyle::State_Selected;
}

} // namespace

SwatchDelegate::SwatchDelegate(bool swatches, QObject* parent) : QStyledItemDelegate(parent), swatches_(swatches) {}

QSize SwatchDelegate::sizeHint(const QStyleOptionViewItem&, const QModelIndex& index) const {
    const QFont font = Theme::instance().font(TypeRole::Table, index.data(EmphasisRole).toBool());
    const double text = textWidth(index.data().toString(), font);
    const bool swatch =
        swatches_ && index.column() == 0 && index.data(CategoryRole).isValid() && !index.parent().isValid();
    return {static_cast<int>(text) + 17 + (swatch ? 18 : 0), kRowHeight};
}

void SwatchDelegate::paintGround(QPainter* painter, const QStyleOptionViewItem& option,
                                 const QModelIndex& index) const {
    const ThemeTokens& t = themeTokens();
    if (selected(option)) {
        painter->fillRect(option.rect, t.selection);
    } else if (option.state & QStyle::State_MouseOver) {
        painter->fillRect(option.rect, t.hover);
    }
    if (index.data(EmphasisRole).toBool()) {
        hairline(*painter, option.rect.left(), option.rect.right() + 1, option.rect.top(), t.line1);
    }
}

void SwatchDelegate::paintText(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index,
                               double left) const {
    const ThemeTokens& t = themeTokens();
    const bool muted = index.data(Qt::UserRole).toBool();
    const QColor color = !(option.state & QStyle::State_Enabled) ? t.disabled
                         : muted && !selected(option)            ? t.text2
                                                                 : t.text1;
    const QFont font = Theme::instance().font(TypeRole::Table, index.data(EmphasisRole).toBool());
    const auto alignment = index.data(Qt::TextAlignmentRole).toInt();
    const QRectF room(left, option.rect.top(), option.rect.right() - left - 7, option.rect.height());
    QString text = index.data().toString();
    if (index.column() == 0 && textWidth(text, font) > room.width()) {
        // Tensors differ at their ends.
        const bool tensor = text.contains(QLatin1Char('.')) && !text.contains(QLatin1Char(' '));
        text = QFontMetricsF(font).elidedText(text, tensor ? Qt::ElideLeft : Qt::ElideRight, room.width());
    }
    drawText(*painter, room, alignment | Qt::AlignVCenter, text, color, font);
}

void SwatchDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    paintGround(painter, option, index);
    double left = option.rect.left() + 4;
    const QVariant category = index.data(CategoryRole);
    // Only groups carry a swatch: it would repeat itself on every row below.
    if (swatches_ && index.column() == 0 && category.isValid() && !index.parent().isValid()) {
        const auto which = static_cast<std::size_t>(category.toInt());
        drawSwatch(*painter, QRectF(left, option.rect.center().y() - 5, 12, 12), themeTokens().categories[which]);
        left += 18;
    }
    paintText(painter, option, index, index.column() == 0 ? left : option.rect.left() + 8);
}

void ShareBarDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    paintGround(painter, option, index);
    const QVariant share = index.data(ShareRole);
    if (!share.isValid()) {
        paintText(painter, option, index, option.rect.left() + 8);
        return;
    }
    const ThemeTokens& t = themeTokens();
    const double width = std::min(kBarWidth, option.rect.width() - 12.0);
    const QRectF bar(option.rect.left() + 8, option.rect.center().y() - kBarHeight / 2 + 1, width, kBarHeight);
    painter->fillRect(bar, t.line0);
    const QVariant category = index.data(CategoryRole);
    const QColor fill = category.isValid() ? t.categories[static_cast<std::size_t>(category.toInt())].fill : t.line2;
    painter->fillRect(
        QRectF(bar.left(), bar.top(), std::max(1.0, width * std::clamp(share.toDouble(), 0.0, 1.0)), kBarHeight), fill);
}

void DeltaDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    const QVariant delta = index.data(DeltaRole);
    if (!delta.isValid()) {
        SwatchDelegate::paint(painter, option, index);
        return;
    }
    paintGround(painter, option, index);
    const ThemeTokens& t = themeTokens();
    const int kind = delta.toInt();
    const QColor color = kind > 1   ? t.text2
                         : kind > 0 ? t.bad
                         : kind < 0 ? t.good
                                    : (selected(option) ? t.text2 : t.text3);
    const QFont font = Theme::instance().font(TypeRole::Table, index.data(EmphasisRole).toBool());
    drawText(*painter, QRectF(option.rect).adjusted(8, 0, -8, 0),
             index.data(Qt::TextAlignmentRole).toInt() | Qt::AlignVCenter, index.data().toString(), color, font);
}

void setUpTable(QTreeView* view, bool tree, bool panel) {
    view->setFrameShape(QFrame::NoFrame);
    view->setUniformRowHeights(true);
    view->setRootIsDecorated(tree);
    view->setItemsExpandable(tree);
    view->setIndentation(tree ? 14 : 0);
    view->setAllColumnsShowFocus(true);
    view->setSelectionBehavior(QAbstractItemView::SelectRows);
    view->setSelectionMode(QAbstractItemView::ExtendedSelection);
    view->setSortingEnabled(true);
    view->setMouseTracking(true);
    view->setTextElideMode(Qt::ElideRight);
    view->header()->setFixedHeight(24);
    view->header()->setHighlightSections(false);
    view->header()->setSectionsMovable(false);
    view->header()->setMinimumSectionSize(32);
    view->setItemDelegate(new SwatchDelegate(true, view));
    const auto colours = [view, panel] {
        QPalette palette = view->palette();
        palette.setColor(QPalette::Base, panel ? themeTokens().panel : themeTokens().canvas);
        view->setPalette(palette);
        view->header()->setPalette(palette);
    };
    QObject::connect(&Theme::instance(), &Theme::changed, view, colours);
    colours();
}

namespace {

/// Ctrl+C of a tree, before the window's own Copy takes it.
class TreeCopier final : public QObject {
public:
    TreeCopier(QTreeView* view, FlatTreeModel* model) : QObject(view), view_(view), model_(model) {
        view->installEventFilter(this);
    }
    void copy(bool whole) const {
        QGuiApplication::clipboard()->setText(
            asTableText(*model_, whole ? QModelIndexList() : view_->selectionModel()->selectedRows()));
    }

protected:
    bool eventFilter(QObject* watched, QEvent* event) override {
        const bool key = event->type() == QEvent::KeyPress || event->type() == QEvent::ShortcutOverride;
        if (key && static_cast<QKeyEvent*>(event)->matches(QKeySequence::Copy)) {
            if (event->type() == QEvent::KeyPress) {
                copy(false);
            }
            event->accept();
            return true;
        }
        return QObject::eventFilter(watched, event);
    }

private:
    QTreeView* view_;
    FlatTreeModel* model_;
};

} // namespace

void setUpCopy(QTreeView* view, FlatTreeModel* model) {
    auto* copier = new TreeCopier(view, model);
    auto* rows = new QAction(QObject::tr("Copy rows"), view);
    auto* whole = new QAction(QObject::tr("Copy table"), view);
    QObject::connect(rows, &QAction::triggered, copier, [copier] { copier->copy(false); });
    QObject::connect(whole, &QAction::triggered, copier, [copier] { copier->copy(true); });
    view->addActions({rows, whole});
    view->setContextMenuPolicy(Qt::ActionsContextMenu);
}

} // namespace vitrine::ui
