// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/shell/command_palette.h"

#include <QAction>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListView>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

enum ActionRole { GroupRole = Qt::UserRole + 1, KeyRole, ReasonRole, ActionPointerRole };

class PaletteDelegate final : public QStyledItemDelegate {
public:
    PaletteDelegate(const FuzzyProxy* proxy, QObject* parent) : QStyledItemDelegate(parent), proxy_(proxy) {}

    QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override { return {100, 28}; }

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        const ThemeTokens& t = themeTokens();
        if (option.state & QStyle::State_Selected) {
            painter->fillRect(option.rect, t.selection);
        }
        const bool on = index.flags() & Qt::ItemIsEnabled;
        const QFont plain = Theme::instance().font(TypeRole::Body);
        const QFont strong = Theme::instance().font(TypeRole::Body, true);
        const QFont small = Theme::instance().font(TypeRole::Axis);
        const QString reason = index.data(ReasonRole).toString();
        const QString right = !on && !reason.isEmpty() ? reason : index.data(GroupRole).toString();
        const QString key = index.data(KeyRole).toString();
        double edge = option.rect.right() - 12;
        if (!key.isEmpty()) {
            const double w = textWidth(key, small);
            drawText(*painter, QRectF(edge - w, option.rect.top(), w + 1, option.rect.height()), Qt::AlignVCenter, key,
                     on ? t.text2 : t.disabled, small);
        }
        edge -= 96;
        const double w = std::min(textWidth(right, small), 220.0);
        const bool selected = option.state & QStyle::State_Selected;
        drawText(*painter, QRectF(edge - w, option.rect.top(), w + 1, option.rect.height()), Qt::AlignVCenter, right,
                 selected ? t.text2 : t.text3, small);
        std::vector<int> places;
        const QString text = index.data().toString();
        fuzzyScore(proxy_->typed(), text, &places);
        double x = option.rect.left() + 12;
        std::size_t next = 0;
        for (int i = 0; i < text.size(); ++i) {
            const bool hit = next < places.size() && places[next] == i;
            next += hit ? 1 : 0;
            const QFont& font = hit ? strong : plain;
            painter->setFont(font);
            painter->setPen(on ? t.text1 : t.disabled);
            const double advance = textWidth(text.mid(i, 1), font);
            painter->drawText(QRectF(x, option.rect.top(), advance + 4, option.rect.height()),
                              Qt::AlignVCenter | Qt::TextSingleLine, text.mid(i, 1));
            x += advance;
        }
    }

private:
    const FuzzyProxy* proxy_;
};

} // namespace

int fuzzyScore(const QString& typed, const QString& text, std::vector<int>* places) {
    if (places != nullptr) {
        places->clear();
    }
    int score = 0, last = -2;
    int from = 0;
    for (const QChar letter : typed) {
        if (letter.isSpace()) {
            continue;
        }
        // A start of a word is worth a look ahead: "gp" is "Go to next Peak", not "Go to next Peak's first p".
        int found = -1;
        for (int i = from; i < text.size(); ++i) {
            if (text[i].toCaseFolded() != letter.toCaseFolded()) {
                continue;
            }
            const bool wordStart = i == 0 || text[i - 1].isSpace();
            if (found < 0 || (wordStart && i != found && found != last + 1)) {
                found = i;
            }
            if (wordStart || i == last + 1) {
                break;
            }
        }
        if (found < 0) {
            return -1;
        }
        score += 1 + (found == 0 || text[found - 1].isSpace() ? 6 : 0) + (found == last + 1 ? 4 : 0);
        last = found;
        from = found + 1;
        if (places != nullptr) {
            places->push_back(found);
        }
    }
    return score;
}

ActionModel::ActionModel(const ActionList& actions, QObject* parent) : QAbstractListModel(parent) {
    for (QAction* action : actions.all()) {
        if (ActionList::idOf(action) != QLatin1String("tools.palette")) {
            actions_.push_back(action);
        }
    }
}

int ActionModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(actions_.size());
}

QVariant ActionModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount()) {
        return {};
    }
    const QAction* action = actionAt(index.row());
    switch (role) {
    case Qt::DisplayRole:
        return action->text();
    case GroupRole:
        return ActionList::groupOf(action);
    case KeyRole:
        return ActionList::keyText(action);
    case ReasonRole:
        return ActionList::reasonOf(action);
    default:
        return {};
    }
}

void FuzzyProxy::setTyped(const QString& typed) {
    typed_ = typed;
    invalidate();
    sort(0, Qt::DescendingOrder);
}

bool FuzzyProxy::filterAcceptsRow(int row, const QModelIndex& parent) const {
    return fuzzyScore(typed_, sourceModel()->index(row, 0, parent).data().toString()) >= 0;
}

bool FuzzyProxy::lessThan(const QModelIndex& left, const QModelIndex& right) const {
    const int a = fuzzyScore(typed_, left.data().toString()), b = fuzzyScore(typed_, right.data().toString());
    return a != b ? a < b : left.row() > right.row();
}

CommandPalette::CommandPalette(const ActionList& actions, QWidget* window) : QWidget(window) {
    setObjectName(QStringLiteral("palette"));
    setAccessibleName(tr("Command palette"));
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(12, 12, 1, 1);
    column->setSpacing(8);
    field_ = new QLineEdit(this);
    field_->setPlaceholderText(tr("Type a command"));
    field_->setAccessibleName(tr("Command"));
    auto* top = new QHBoxLayout;
    top->setContentsMargins(0, 0, 11, 0);
    top->addWidget(field_);
    column->addLayout(top);
    list_ = new QListView(this);
    list_->setFrameShape(QFrame::NoFrame);
    list_->setUniformItemSizes(true);
    list_->setFocusPolicy(Qt::NoFocus);
    list_->setAccessibleName(tr("Commands"));
    column->addWidget(list_);
    model_ = new ActionModel(actions, this);
    proxy_ = new FuzzyProxy(this);
    proxy_->setSourceModel(model_);
    list_->setModel(proxy_);
    list_->setItemDelegate(new PaletteDelegate(proxy_, this));
    connect(field_, &QLineEdit::textChanged, this, [this](const QString& text) {
        proxy_->setTyped(text);
        list_->setCurrentIndex(proxy_->index(0, 0));
    });
    connect(list_, &QListView::clicked, this, &CommandPalette::activate);
    field_->installEventFilter(this);
    hide();
}

void CommandPalette::openOver() {
    if (refresh_) {
        refresh_();
    }
    const QSize size(std::min(560, parentWidget()->width() - 24), std::min(380, parentWidget()->height() - 24));
    setGeometry(QRect(QPoint((parentWidget()->width() - size.width()) / 2, 66), size));
    QPalette p = list_->palette();
    p.setColor(QPalette::Base, themeTokens().panel);
    list_->setPalette(p);
    field_->clear();
    proxy_->setTyped({});
    list_->setCurrentIndex(proxy_->index(0, 0));
    show();
    raise();
    field_->setFocus(Qt::ShortcutFocusReason);
}

void CommandPalette::activate(const QModelIndex& index) {
    if (!index.isValid()) {
        return;
    }
    QAction* action = model_->actionAt(proxy_->mapToSource(index).row());
    if (action->isEnabled()) {
        hide();
        parentWidget()->setFocus();
        action->trigger();
    }
}

void CommandPalette::paintEvent(QPaintEvent*) {
    paintOverlayGround(this);
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::FocusOut) {
        hide();
        return false;
    }
    if (event->type() != QEvent::KeyPress) {
        return QWidget::eventFilter(watched, event);
    }
    const auto* key = static_cast<QKeyEvent*>(event);
    const int row = list_->currentIndex().row();
    switch (key->key()) {
    case Qt::Key_Escape:
        hide();
        return true;
    case Qt::Key_Down:
        list_->setCurrentIndex(proxy_->index(std::min(row + 1, proxy_->rowCount() - 1), 0));
        return true;
    case Qt::Key_Up:
        list_->setCurrentIndex(proxy_->index(std::max(row - 1, 0), 0));
        return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        activate(list_->currentIndex());
        return true;
    default:
        return false;
    }
}

} // namespace vitrine::ui
