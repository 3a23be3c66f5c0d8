// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/forms/named_combo.h"

#include <QLineEdit>
#include <QStyleOptionComboBox>
#include <QStylePainter>

#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

namespace {

constexpr int kNameLeft = 9, kNameAir = 7, kComboHeight = 24;

} // namespace

NamedCombo::NamedCombo(const QString& name, bool editable, QWidget* parent) : QComboBox(parent) {
    setAccessibleName(name);
    setEditable(editable);
    setControlHeight(this, kComboHeight);
    setSizeAdjustPolicy(QComboBox::AdjustToContents);
    name_ = new TextLabel(name, TypeRole::Table, TextColor::Text2, false, this);
    name_->setAttribute(Qt::WA_TransparentForMouseEvents);
    nameRoom_ = static_cast<int>(textWidth(name, Theme::instance().font(TypeRole::Table))) + kNameAir;
    if (editable) {
        setInsertPolicy(QComboBox::NoInsert);
        lineEdit()->setTextMargins(nameRoom_, 0, 0, 0);
    }
}

QSize NamedCombo::sizeHint() const {
    return QComboBox::sizeHint() + QSize(nameRoom_, 0);
}

void NamedCombo::resizeEvent(QResizeEvent* event) {
    QComboBox::resizeEvent(event);
    name_->setGeometry(kNameLeft, 0, nameRoom_, height());
    name_->raise();
}

void NamedCombo::paintEvent(QPaintEvent* event) {
    if (isEditable()) {
        QComboBox::paintEvent(event);
        return;
    }
    QStylePainter painter(this);
    QStyleOptionComboBox option;
    initStyleOption(&option);
    painter.drawComplexControl(QStyle::CC_ComboBox, option);
    const QRect field = style()->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, this);
    const QRect text = QRect(QPoint(kNameLeft + nameRoom_, 0), QPoint(field.right(), height() - 1));
    const QString shown = fontMetrics().elidedText(currentText(), Qt::ElideRight, text.width());
    drawText(painter, text, Qt::AlignVCenter, shown, themeTokens().text1, font());
}

} // namespace vitrine::ui
