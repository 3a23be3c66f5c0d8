// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/shell/shortcuts_panel.h"

#include <QAction>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>
#include <map>

#include "ui/views/shell/command_palette.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

ShortcutsPanel::ShortcutsPanel(ActionList& actions, QWidget* window) : QWidget(window), actions_(actions) {
    setObjectName(QStringLiteral("shortcuts"));
    setAccessibleName(tr("Shortcuts"));
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(12, 12, 12, 12);
    column->setSpacing(8);
    auto* top = new QHBoxLayout;
    top->addWidget(new TextLabel(tr("Shortcuts"), TypeRole::Title, TextColor::Text1, true, this));
    top->addSpacing(12);
    filter_ = new QLineEdit(this);
    filter_->setPlaceholderText(tr("Filter"));
    filter_->setAccessibleName(tr("Filter"));
    top->addWidget(filter_, 1);
    auto* reset = new QPushButton(tr("Reset keys"), this);
    top->addWidget(reset);
    auto* close = iconButton(QStringLiteral("close"), tr("Close"), this);
    top->addWidget(close);
    column->addLayout(top);
    area_ = new QScrollArea(this);
    area_->setFrameShape(QFrame::NoFrame);
    area_->setWidgetResizable(true);
    column->addWidget(area_, 1);
    status_ = new TextLabel(tr("A row is a button: press it, then the new key."), TypeRole::Table, TextColor::Text3,
                            false, this);
    column->addWidget(status_);
    connect(filter_, &QLineEdit::textChanged, this, &ShortcutsPanel::rebuild);
    connect(close, &QPushButton::clicked, this, &QWidget::hide);
    connect(reset, &QPushButton::clicked, this, [this] {
        actions_.resetKeys();
        rebuild();
        emit keysChanged();
    });
    filter_->installEventFilter(this);
    hide();
}

void ShortcutsPanel::openOver() {
    const QSize size(std::min(880, parentWidget()->width() - 24), std::min(560, parentWidget()->height() - 24));
    setGeometry(QRect(
        QPoint((parentWidget()->width() - size.width()) / 2, (parentWidget()->height() - size.height()) / 2), size));
    capturing_ = nullptr;
    filter_->clear();
    rebuild();
    show();
    raise();
    filter_->setFocus();
}

void ShortcutsPanel::rebuild() {
    auto* page = new QWidget;
    auto* columns = new QHBoxLayout(page);
    columns->setContentsMargins(0, 0, 8, 0);
    columns->setSpacing(24);
    std::vector<QString> order;
    std::map<QString, std::vector<QAction*>> groups;
    int rows = 0;
    for (QAction* action : actions_.all()) {
        if (fuzzyScore(filter_->text(), action->text()) < 0 &&
            !ActionList::keyText(action).contains(filter_->text(), Qt::CaseInsensitive)) {
            continue;
        }
        const QString group = ActionList::groupOf(action);
        if (groups[group].empty()) {
            order.push_back(group);
            rows += 2;
        }
        groups[group].push_back(action);
        ++rows;
    }
    QVBoxLayout* column = nullptr;
    int used = 0;
    const int perColumn = rows / 3 + 1;
    for (const QString& group : order) {
        if (column == nullptr || (used >= perColumn && columns->count() < 3)) {
            column = new QVBoxLayout;
            column->setSpacing(0);
            column->setAlignment(Qt::AlignTop);
            columns->addLayout(column, 1);
            used = 0;
        }
        auto* head = new TextLabel(group, TypeRole::Table, TextColor::Text3, true, page);
        head->setContentsMargins(8, used == 0 ? 0 : 10, 0, 4);
        column->addWidget(head);
        used += 2;
        for (QAction* action : groups[group]) {
            auto* row = new QPushButton(page);
            row->setFlat(true);
            row->setAccessibleName(action->text() + QLatin1Char(' ') + ActionList::keyText(action));
            row->setFixedHeight(24);
            auto* cells = new QHBoxLayout(row);
            cells->setContentsMargins(8, 0, 8, 0);
            auto* name = new TextLabel(action->text(), TypeRole::Table, TextColor::Text1, false, row);
            name->setElide(true);
            name->setToolTip(action->text());
            cells->addWidget(name, 1);
            const QString key = ActionList::keyText(action);
            if (!key.isEmpty()) {
                cells->addWidget(new KeyHint(key, row));
            }
            connect(row, &QPushButton::clicked, this, [this, action] { startCapture(action); });
            column->addWidget(row);
            ++used;
        }
    }
    area_->setWidget(page);
}

void ShortcutsPanel::startCapture(QAction* action) {
    if (ActionList::isByPlace(action)) {
        status_->setText(tr("“%1” is a place on the keyboard and stays there.").arg(action->text()));
        return;
    }
    capturing_ = action;
    status_->setText(tr("Press the key for “%1”. Backspace removes it, Esc keeps it.").arg(action->text()));
    setFocus();
}

void ShortcutsPanel::keyPressEvent(QKeyEvent* event) {
    if (capturing_ == nullptr) {
        if (event->key() == Qt::Key_Escape) {
            hide();
            return;
        }
        QWidget::keyPressEvent(event);
        return;
    }
    const int key = event->key();
    if (key == Qt::Key_Shift || key == Qt::Key_Control || key == Qt::Key_Alt || key == Qt::Key_Meta) {
        return;
    }
    if (key != Qt::Key_Escape) {
        const QKeySequence keys = key == Qt::Key_Backspace ? QKeySequence() : QKeySequence(event->keyCombination());
        const QAction* loser = actions_.rebind(capturing_, keys);
        status_->setText(loser == nullptr ? tr("Kept.") : tr("Kept. “%1” lost this key.").arg(loser->text()));
        emit keysChanged();
    }
    capturing_ = nullptr;
    rebuild();
    filter_->setFocus();
}

void ShortcutsPanel::paintEvent(QPaintEvent*) {
    paintOverlayGround(this);
}

bool ShortcutsPanel::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::KeyPress && static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape) {
        hide();
        return true;
    }
    return QWidget::eventFilter(watched, event);
}

} // namespace vitrine::ui
