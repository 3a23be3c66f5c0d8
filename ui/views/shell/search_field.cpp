// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/shell/search_field.h"

#include <QKeyEvent>

#include "ui/widgets/base/icons.h"

namespace vitrine::ui {

namespace {

constexpr int kWidth = 224, kSearchFieldSmallWidth = 30, kHeight = 26;

} // namespace

SearchField::SearchField(Finder find, QWidget* parent) : QLineEdit(parent), find_(std::move(find)) {
    setObjectName(QStringLiteral("search"));
    setPlaceholderText(tr("Search"));
    setAccessibleName(tr("Search"));
    setFixedHeight(kHeight);
    setFixedWidth(kWidth);
    addAction(icon(QStringLiteral("search")), QLineEdit::LeadingPosition);
    hint_ = new TextLabel({}, TypeRole::Axis, TextColor::Text3, false, this);
    hint_->setAttribute(Qt::WA_TransparentForMouseEvents);
    hint_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    hint_->setGeometry(kWidth - 98, 0, 90, kHeight);
    key_ = new KeyHint(QStringLiteral("/"), this);
    key_->setAttribute(Qt::WA_TransparentForMouseEvents);
    const QSize size = key_->sizeHint();
    key_->setGeometry(kWidth - 6 - size.width(), (kHeight - size.height()) / 2, size.width(), size.height());
}

void SearchField::setHint(const QString& hint) {
    hint_->setText(hint);
    key_->setVisible(hint.isEmpty() && text().isEmpty() && width() > kSearchFieldSmallWidth);
}

void SearchField::findAgain(int direction) {
    setHint(find_(text(), direction));
}

void SearchField::takeFocus() {
    setFocus(Qt::ShortcutFocusReason);
    selectAll();
}

void SearchField::setSmall(bool isSmall) {
    small_ = isSmall;
    fit();
}

void SearchField::fit() {
    setFixedWidth(small_ && !hasFocus() && text().isEmpty() ? kSearchFieldSmallWidth : kWidth);
    hint_->setVisible(width() > kSearchFieldSmallWidth);
    setHint(hint_->text());
}

void SearchField::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) {
        findAgain(event->modifiers() & Qt::ShiftModifier ? -1 : 1);
    } else if (event->key() == Qt::Key_Escape) {
        clear();
        emit escaped();
    } else {
        QLineEdit::keyPressEvent(event);
    }
}

void SearchField::keyReleaseEvent(QKeyEvent* event) {
    const QString hint = find_(text(), 0);
    setHint(text().isEmpty() ? QString() : hint);
    QLineEdit::keyReleaseEvent(event);
}

void SearchField::focusInEvent(QFocusEvent* event) {
    QLineEdit::focusInEvent(event);
    QMetaObject::invokeMethod(this, &SearchField::fit, Qt::QueuedConnection); // a width changes between events
}

void SearchField::focusOutEvent(QFocusEvent* event) {
    QLineEdit::focusOutEvent(event);
    QMetaObject::invokeMethod(this, &SearchField::fit, Qt::QueuedConnection);
}

} // namespace vitrine::ui
